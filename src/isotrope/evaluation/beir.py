"""Retrieval sets in the format of BEIR: documents, queries and relevance judgements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from isotrope.errors import InputError
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


class _Judgement(NamedTuple):
    line: int
    query: str
    document: str
    relevance: int


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
    _check_known(source, [(j.line, j.document) for j in judged], "documents", corpus, has_text)
    documents = [name for name, full in has_text.items() if full]
    if not documents:
        raise InputError(f"all documents of {corpus} are empty; give some with text.")
    _check_known(source, [(j.line, j.query) for j in judged], "queries", queries_file, _check_ids(queries_file))
    judgements = group_by_query(source, judged)
    queries = {query.id: query.text for query in read_entries(queries_file) if query.id in judgements}
    if empty := [query for query, text in queries.items() if not text]:
        raise InputError(f"{len(empty):,} queries of {queries_file} are empty (the first: {empty[0]!r}); remove them.")
    judgements = {query: judgements[query] for query in queries}
    notes = _describe_set(len(has_text) - len(documents), judgements)
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


def read_judgements(path: Path) -> Iterator[_Judgement]:
    """Read the judgements of a file, with the numbers of their lines."""
    first = True
    for line, text in decode_lines(file_lines(path), str(path)):
        if not text.strip():
            continue
        # Ids may contain spaces where tabs separate the columns; files of TREC often have spaces between columns.
        cells = text.rstrip("\r\n").split("\t") if "\t" in text else text.split()
        query, *_, document, score = cells if len(cells) in (3, 4) else [""] * 3
        relevance = _parse_integer(score)
        if relevance is not None and query and document:
            yield _Judgement(line, query, document, relevance)
        elif not (first and len(cells) == 3):  # the first line may be a header
            raise InputError(
                f"{path} has no judgement in line {line}; expected a query's id, a document's id and a whole number."
            )
        first = False


def _parse_integer(score: str) -> int | None:
    """Parse an integer, None for anything else.

    >>> [_parse_integer(score) for score in ("2", "1.0", "0.5", "score", "inf")]
    [2, 1, None, None, None]
    """
    try:
        number = float(score)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _check_known(
    path: Path, named: Sequence[tuple[int, str]], what: str, file: Path, known: Mapping[str, bool]
) -> None:
    """Check that the ids of judgements are in a file of documents or queries."""
    unknown = [(line, name) for line, name in named if name not in known]
    if unknown:
        line, name = unknown[0]
        raise InputError(
            f"{len(unknown):,} of {len(named):,} judgements in {path} are of {what} that {file.name} does not have "
            f"(the first: {name!r} in line {line}); give files that belong together, or remove those lines."
        )


def group_by_query(path: Path, judged: Sequence[_Judgement]) -> dict[str, dict[str, int]]:
    """Group judgements by query, and check that they do not contradict each other."""
    found: dict[str, dict[str, int]] = {}
    for line, query, document, relevance in judged:
        before = found.setdefault(query, {}).setdefault(document, relevance)
        if before != relevance:
            raise InputError(
                f"{path} says in line {line} that document {document!r} has relevance {relevance} for query {query!r}, "
                f"and {before} in an earlier line; keep one of them."
            )
    if not any(relevance > 0 for judgement in found.values() for relevance in judgement.values()):
        raise InputError(f"{path} calls no document relevant, which is a score above 0; check the scores.")
    return found


def _describe_set(empty: int, judgements: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Notes about empty documents and queries that cannot be answered."""
    counts = {
        "documents are empty and never found": empty,
        "queries have no relevant document and score 0, as in trec_eval": sum(
            max(relevance.values()) <= 0 for relevance in judgements.values()
        ),
        "relevant documents have the id of their query and are never found, as in BEIR": sum(
            relevance.get(query, 0) > 0 for query, relevance in judgements.items()
        ),
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]
