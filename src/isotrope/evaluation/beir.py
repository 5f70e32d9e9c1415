"""Retrieval sets in the format of BEIR: documents, queries, and which documents answer which query."""

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
    """A set that was read once, to check it; the documents' texts are read again where they are needed.

    documents: ids of those that are not empty, in the order of the file. queries: ids and texts of those that have
    judgements. judgements: for each query the relevance of documents, 0 or less for what is not relevant. notes: what
    to know of the set.
    """

    name: str
    corpus: Path
    documents: Sequence[str]
    queries: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]
    notes: Sequence[str]

    def texts(self) -> Iterator[str]:
        """The documents, title before text, in the order of their ids."""
        return (document.text for document in _entries(self.corpus) if document.text)


class _Entry(NamedTuple):
    """A document or a query, and the line that it stands in."""

    line: int
    id: str
    text: str


class _Judgement(NamedTuple):
    line: int
    query: str
    document: str
    relevance: int


def open_set(folder: str | Path, split: str = "test") -> RetrievalSet:
    r"""Read corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, as Thakur et al. (2021, arXiv:2104.08663) lay them out.

    Judgements have the columns query-id, corpus-id and score below a header, or TREC's four columns without one. Files
    may be packed with gzip. Ids that occur twice are refused, and judgements of what is not there.

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
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; give one with corpus.jsonl, queries.jsonl and qrels.")
    corpus, asked = _file(place / "corpus.jsonl"), _file(place / "queries.jsonl")
    source = _judged(place / "qrels", split)
    judged = list(_judgements(source))
    written = _written(corpus)
    _refuse_unknown(source, [(j.line, j.document) for j in judged], "documents", corpus, written)
    documents = [name for name, some in written.items() if some]
    if not documents:
        raise InputError(f"all documents of {corpus} are empty; give some with text.")
    _refuse_unknown(source, [(j.line, j.query) for j in judged], "queries", asked, _written(asked))
    judgements = _by_query(source, judged)
    queries = {query.id: query.text for query in _entries(asked) if query.id in judgements}
    if silent := [query for query, text in queries.items() if not text]:
        raise InputError(f"{len(silent):,} queries of {asked} are empty (the first: {silent[0]!r}); remove them.")
    judgements = {query: judgements[query] for query in queries}
    notes = _notes(len(written) - len(documents), judgements)
    return RetrievalSet(place.resolve().name, corpus, documents, queries, judgements, notes)


def _file(path: Path) -> Path:
    """A file of that name, or packed."""
    packed = path.with_name(f"{path.name}.gz")
    for found in (path, packed):
        if found.is_file():
            return found
    raise InputError(f"there is no {path.name} in {str(path.parent)!r}; give a folder in the format of BEIR.")


def _judged(folder: Path, split: str) -> Path:
    path = folder / f"{split}.tsv"
    if path.is_file():
        return path
    there = ", ".join(sorted(found.stem for found in folder.glob("*.tsv")))
    hint = f"the splits are: {there}" if there else f"put the judgements into {path}"
    raise InputError(f"there is no split {split!r} in {str(folder)!r}; {hint}.")


def _entries(path: Path) -> Iterator[_Entry]:
    """The entries of a file of documents or queries; lines that hold none are refused by their number."""
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
        yield _Entry(line, str(found["_id"]), " ".join(part for part in parts if part).strip())


def _written(path: Path) -> dict[str, bool]:
    """Whether each entry of a file has a text, by its id; ids that occur again are refused."""
    found, repeated = dict[str, bool](), dict[str, int]()
    for line, name, text in _entries(path):
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


def _judgements(path: Path) -> Iterator[_Judgement]:
    """The judgements of a file, with the lines that they stand in."""
    first = True
    for line, text in decode_lines(file_lines(path), str(path)):
        if not text.strip():
            continue
        # Ids may hold spaces where tabs are between them; files of TREC often have spaces between.
        cells = text.rstrip("\r\n").split("\t") if "\t" in text else text.split()
        query, *_, document, score = cells if len(cells) in (3, 4) else [""] * 3
        relevance = _whole(score)
        if relevance is not None and query and document:
            yield _Judgement(line, query, document, relevance)
        elif not (first and len(cells) == 3):  # what is no judgement in the first line is the header
            raise InputError(
                f"{path} has no judgement in line {line}; expected a query's id, a document's id and a whole number."
            )
        first = False


def _whole(score: str) -> int | None:
    """A whole number, None where it is something else.

    >>> [_whole(score) for score in ("2", "1.0", "0.5", "score", "inf")]
    [2, 1, None, None, None]
    """
    try:
        number = float(score)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _refuse_unknown(
    path: Path, named: Sequence[tuple[int, str]], what: str, place: Path, known: Mapping[str, bool]
) -> None:
    unknown = [(line, name) for line, name in named if name not in known]
    if unknown:
        line, name = unknown[0]
        raise InputError(
            f"{len(unknown):,} of {len(named):,} judgements in {path} are of {what} that {place.name} does not have "
            f"(the first: {name!r} in line {line}); give files that belong together, or remove those lines."
        )


def _by_query(path: Path, judged: Sequence[_Judgement]) -> dict[str, dict[str, int]]:
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


def _notes(empty: int, judgements: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What a user should know of a set that can be used."""
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
