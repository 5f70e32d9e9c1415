"""Relevance judgements (qrels): files of TREC and of BEIR, and checks that they belong to documents and queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from isotrope.errors import InputError
from isotrope.sources.corpora.lines import decode_lines, file_lines

#: Unknown ids that an error names.
_SHOWN = 3


class Judgement(NamedTuple):
    """The relevance of a document for a query; line: its number in the file, None where there is no file."""

    line: int | None
    query: str
    document: str
    relevance: int


def read_judgements(path: Path) -> Iterator[Judgement]:
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
            yield Judgement(line, query, document, relevance)
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


def open_judgements(qrels: str | Path | Mapping[str, Mapping[str, int]]) -> list[Judgement]:
    """Read the judgements of a file, or list those of a mapping from queries to documents to relevance.

    >>> open_judgements({"q": {"d": 1}})
    [Judgement(line=None, query='q', document='d', relevance=1)]
    """
    if isinstance(qrels, Mapping):
        return [
            Judgement(None, str(query), str(document), relevance)
            for query, judged in qrels.items()
            for document, relevance in judged.items()
        ]
    path = Path(qrels)
    if not path.is_file():
        raise InputError(
            f"there is no file {str(qrels)!r} of judgements; give a TSV file of BEIR or a qrels file of TREC."
        )
    return list(read_judgements(path))


def check_known(
    source: str | Path, named: Sequence[tuple[int | None, str]], what: str, where: str, known: Collection[str]
) -> None:
    """Check that the ids of judgements are among known ones.

    Args:
        source: The file of judgements, for the error.
        named: Line and id of each judgement.
        what: What the ids are of: "documents" or "queries".
        where: What has the known ids.
        known: The known ids.
    """
    unknown = [(line, name) for line, name in named if name not in known]
    if not unknown:
        return
    first: dict[str, str] = {}
    for line, name in unknown:
        first.setdefault(name, repr(name) if line is None else f"{name!r} in line {line}")
    shown = ", ".join(list(first.values())[:_SHOWN])
    raise InputError(
        f"{len(unknown):,} of {len(named):,} judgements in {source} are of {what} that {where} does not have "
        f"(the first: {shown}); give files that belong together, or remove those lines."
    )


def group_by_query(path: str | Path, judged: Sequence[Judgement]) -> dict[str, dict[str, int]]:
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


def describe_judgements(judgements: Mapping[str, Mapping[str, int]], *, same_ids: bool = True) -> list[str]:
    """Notes about queries that cannot be answered; same_ids: whether a document with the id of a query is left out."""
    counts = {
        "queries have no relevant document and score 0, as in trec_eval": sum(
            max(relevance.values()) <= 0 for relevance in judgements.values()
        ),
        "relevant documents have the id of their query and are never found, as in BEIR": sum(
            same_ids and relevance.get(query, 0) > 0 for query, relevance in judgements.items()
        ),
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]
