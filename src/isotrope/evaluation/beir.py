"""Retrieval sets in the format of BEIR: documents, queries and relevance judgements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from isotrope.errors import InputError
from isotrope.evaluation.judgements import check_known, describe_judgements, group_by_query, read_judgements
from isotrope.sources.corpora.lines import decode_lines, file_lines


@dataclass(frozen=True)
class RetrievalSet:
    """A retrieval set that was read once to check it; the texts of documents are read again when needed.

    documents: ids of the documents that are not empty, in the order of the file. queries: texts by id, of queries with
    judgements. judgements: for each query the relevance of documents, 0 or less for not relevant. notes: what to know
    about the set.
    """

    name: str
    corpus: Path
    documents: Sequence[str]
    queries: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]
    notes: Sequence[str]

    def texts(self) -> Iterator[str]:
        """Read the documents, title before text, in the order of their ids."""
        return (document.text for document in read_entries(self.corpus) if document.text)


class _BeirRecord(NamedTuple):
    """A document or a query, and the number of its line."""

    line: int
    id: str
    text: str


def open_set(folder: str | Path, split: str = "test") -> RetrievalSet:
    r"""Read corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv of a folder, and check them.

    Judgements have the columns query-id, corpus-id and score below a header, or the four columns of TREC without one.
    Files may be compressed with gzip. Ids that occur twice and judgements of unknown ids raise InputError.

    Args:
        folder: folder of the set.
        split: split of the judgements.

    References:
        Thakur et al. 2021, arXiv:2104.08663

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     at = Path(folder)
        ...     (at / "qrels").mkdir()
        ...     _ = (at / "corpus.jsonl").write_text('{"_id": "d", "title": "Rain", "text": "falls."}')
        ...     _ = (at / "queries.jsonl").write_text('{"_id": "q", "text": "What falls?"}')
        ...     _ = (at / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1")
        ...     found = open_set(folder)
        ...     list(found.texts()), found.queries, found.judgements
        (['Rain falls.'], {'q': 'What falls?'}, {'q': {'d': 1}})
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; give one with corpus.jsonl, queries.jsonl and qrels.")
    corpus, queries_file = _find_file(root / "corpus.jsonl"), _find_file(root / "queries.jsonl")
    source = _find_split(root / "qrels", split)
    judged = list(read_judgements(source))
    has_text = _check_ids(corpus)
    check_known(source, [(j.line, j.document) for j in judged], "documents", corpus.name, has_text)
    documents = [name for name, full in has_text.items() if full]
    if not documents:
        raise InputError(f"all documents of {corpus} are empty; give some with text.")
    check_known(source, [(j.line, j.query) for j in judged], "queries", queries_file.name, _check_ids(queries_file))
    judgements = group_by_query(source, judged)
    queries = {query.id: query.text for query in read_entries(queries_file) if query.id in judgements}
    if empty := [query for query, text in queries.items() if not text]:
        raise InputError(f"{len(empty):,} queries of {queries_file} are empty (the first: {empty[0]!r}); remove them.")
    judgements = {query: judgements[query] for query in queries}
    empty_documents = len(has_text) - len(documents)
    notes = [f"{empty_documents:,} documents are empty and never found"] if empty_documents else []
    notes += describe_judgements(judgements)
    return RetrievalSet(root.resolve().name, corpus, documents, queries, judgements, notes)


def _find_file(path: Path) -> Path:
    """Find a file of this name, plain or compressed."""
    compressed = path.with_name(f"{path.name}.gz")
    for found in (path, compressed):
        if found.is_file():
            return found
    raise InputError(f"there is no {path.name} in {str(path.parent)!r}; give a folder in the format of BEIR.")


def _find_split(folder: Path, split: str) -> Path:
    """Find the judgements of a split."""
    path = folder / f"{split}.tsv"
    if path.is_file():
        return path
    there = ", ".join(sorted(found.stem for found in folder.glob("*.tsv")))
    hint = f"the splits are: {there}" if there else f"put the judgements into {path}"
    raise InputError(f"there is no split {split!r} in {str(folder)!r}; {hint}.")


def read_entries(path: Path) -> Iterator[_BeirRecord]:
    """Read a file of documents or queries; an error names the number of a wrong line."""
    for line, text in decode_lines(file_lines(path), str(path)):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not JSON in line {line} ({error}); correct or remove the line.") from error
        if not isinstance(found, dict) or not isinstance(found.get("_id"), str | int):
            raise InputError(f"{path} has no object with an _id in line {line}; correct or remove the line.")
        parts = [found.get(name) or "" for name in ("title", "text")]
        if "text" not in found or not all(isinstance(part, str) for part in parts):
            raise InputError(f'{path} has no "text" that is a string in line {line}; correct or remove the line.')
        yield _BeirRecord(line, str(found["_id"]), " ".join(part for part in parts if part).strip())


def _check_ids(path: Path) -> dict[str, bool]:
    """Check that the ids of a file are unique, and find for each whether its entry has a text."""
    found, repeated = dict[str, bool](), dict[str, int]()
    for line, name, text in read_entries(path):
        if name in found:
            repeated.setdefault(name, line)
        found[name] = bool(text)
    if repeated:
        name, line = next(iter(repeated.items()))
        raise InputError(
            f"{path} has {len(repeated):,} ids more than once (the first: {name!r}, again in line {line}); "
            "give each entry its own."
        )
    if not found:
        raise InputError(f"{path} is empty; expected a line of JSON for each entry.")
    return found
