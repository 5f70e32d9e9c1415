"""What an evaluation of an index reads: a sample of vectors, queries that are no part of it, and judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.evaluation.judged_rows import JudgedRows
from isotrope.evaluation.judged_vectors import VectorSet, read_all_rows
from isotrope.evaluation.ranking import NOTHING
from isotrope.sources.vectors.source import ArraySource

Rows: TypeAlias = NDArray[np.floating[Any]]
Numbers: TypeAlias = NDArray[np.int64]

#: Queries that are searched at most, and the share of the vectors that is held out where there are no queries.
MOST_QUERIES, _HELD_OUT = 1_000, 5


@dataclass(frozen=True, eq=False)
class IndexData:
    """Rows for an index and queries for it.

    Attributes:
        rows: The vectors of the index, (n, d).
        queries: The vectors of the queries, (q, d).
        notes: What to know about both.
        judged: For each query the relevance of rows by number; numbers below 0 are not in the index. None without
            judgements.
        own: For each query the row that has its id and does not count for its ranking, or NOTHING, (q,).
    """

    rows: Rows
    queries: Rows
    notes: Sequence[str]
    judged: Sequence[Mapping[int, int]] | None
    own: Numbers


def read_index_data(given: VectorSet, k: int, sample: int, seed: int) -> IndexData:
    """Read at most `sample` vectors and their queries, without rows that are zero or not finite.

    Args:
        given: Where they are.
        k: Neighbours of a query, of which there must be more rows.
        sample: Vectors at most. Judged documents are always among them.
        seed: Selects rows and queries.
    """
    judged = None if given.qrels is None else given.read_judged()
    rng = np.random.default_rng(seed)
    total = given.documents.total
    held_out = min(MOST_QUERIES, min(total, sample) // _HELD_OUT) if given.queries is None else 0
    wanted = () if judged is None else find_judged_rows(judged)
    kept = select_rows(total, sample + held_out, wanted, rng)
    rows, notes = read_rows(given.documents, kept), []
    if len(kept) < total:
        notes.append(f"{len(kept):,} of {total:,} vectors were sampled")
    good = is_usable(rows)
    if bad := int(np.count_nonzero(~good)):
        notes.append(f"{bad:,} vectors are zero or not finite and are left out")
    rows, kept = rows[good], kept[good]
    if given.queries is None:
        queries, rows = hold_out(rows, held_out, rng)
        notes.append(f"the queries are {len(queries):,} of the vectors, drawn at random and left out of the index")
        found = IndexData(rows, queries, notes, None, np.full(len(queries), NOTHING))
    else:
        found = _read_queries(given.queries, judged, rows, kept, notes, rng)
    if not len(found.queries) or len(found.rows) <= k:
        raise InputError(
            f"got {len(found.rows):,} usable vectors and {len(found.queries):,} queries, expected more than {k} "
            "vectors and at least one query: give more of them, or a smaller k."
        )
    return found


def _read_queries(
    source: ArraySource, judged: JudgedRows | None, rows: Rows, kept: Numbers, notes: list[str], rng: Any
) -> IndexData:
    """The queries that are given, with judgements by the numbers of the rows that were kept."""
    queries = read_all_rows(source) if judged is None else judged.queries
    good = np.flatnonzero(is_usable(queries))
    if bad := len(queries) - len(good):
        notes.append(f"{bad:,} queries are zero or not finite and are left out")
    if len(good) > MOST_QUERIES:
        notes.append(f"{MOST_QUERIES:,} of {len(good):,} queries were sampled")
        good = np.sort(rng.choice(good, MOST_QUERIES, replace=False))
    if judged is None:
        return IndexData(rows, queries[good], notes, None, np.full(len(good), NOTHING))
    place = {int(row): i for i, row in enumerate(kept)}
    relevance = [
        {place.get(row, NOTHING - 1 - i): grade for i, (row, grade) in enumerate(one.items())}
        for one in judged.number_judgements()
    ]
    own = np.array([place.get(int(row), NOTHING) for row in judged.find_own()[good]])
    return IndexData(rows, queries[good], [*judged.notes, *notes], [relevance[i] for i in good], own)


def find_judged_rows(judged: JudgedRows) -> list[int]:
    """The numbers of the documents that have judgements, ascending."""
    return sorted({row for one in judged.number_judgements() for row in one if row >= 0})


def select_rows(total: int, most: int, wanted: Sequence[int], rng: np.random.Generator) -> Numbers:
    """Numbers of at most so many rows, drawn at random, ascending; those that are wanted are always among them.

    >>> select_rows(5, 9, (), np.random.default_rng(0)).tolist()
    [0, 1, 2, 3, 4]
    """
    if total <= most:
        return np.arange(total)
    others = np.setdiff1d(np.arange(total), np.asarray(wanted, dtype=np.int64))
    drawn = rng.choice(others, max(0, most - len(wanted)), replace=False)
    return np.sort(np.concatenate([np.asarray(wanted, dtype=np.int64), drawn]))


def read_rows(source: ArraySource, numbers: Numbers) -> Rows:
    """Read the rows of some numbers, ascending; the others are read and dropped."""
    parts, start = [], 0
    for batch in source.batches():
        stop = start + len(batch.rows)
        low, high = np.searchsorted(numbers, [start, stop])
        parts.append(batch.layers[0][numbers[low:high] - start])
        start = stop
    return np.concatenate(parts)


def hold_out(rows: Rows, count: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Rows drawn at random as queries, and all others."""
    drawn = np.zeros(len(rows), dtype=bool)
    drawn[rng.permutation(len(rows))[:count]] = True
    return rows[drawn], rows[~drawn]


def is_usable(rows: Rows) -> NDArray[np.bool_]:
    """Whether each row is finite and not zero, (n, d) -> (n,)."""
    return np.asarray(np.isfinite(rows).all(axis=1) & (rows != 0).any(axis=1))
