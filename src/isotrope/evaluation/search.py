"""Exact search by cosine, in constant memory, with an order that does not depend on how the rows are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.errors import InputError

#: What stands where there is no document to find.
NOTHING = -1

#: Queries and documents of one product.
_QUERIES, _DOCUMENTS = 256, 4096

#: A cosine and the place of its document in the order of ids make one whole number, so that all are different and
#: sorting them needs no other rule: 34 bits for the cosine in steps of 2e-10, 30 for the place.
_STEP, _PLACES = 2.0**32, 30

#: The number of a document that must not be found.
_LOWEST = np.iinfo(np.int64).min


def search(
    queries: NDArray[Any], documents: Iterable[NDArray[Any]], ids: Sequence[str], k: int, own: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Numbers of the k documents nearest to each query by cosine, the nearest first, (n, d) -> (n, k).

    documents: blocks of rows, in the order of ids. own: (n,), for each query a document that it must not find, or
    NOTHING. Of equally near documents the one with the greater id comes first, as in trec_eval. Rows with NaN or
    infinity are never found and find nothing; rows of zeros have cosine 0 to all. NOTHING fills up what is short of k.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    >>> search(np.array([[1.0, 0.1]]), [rows], ["a", "b", "c", "d"], 3, np.array([NOTHING])).tolist()
    [[2, 0, 3]]
    """
    if len(ids) >= 1 << _PLACES:
        raise InputError(f"got {len(ids):,} documents, expected fewer than {1 << _PLACES:,}; search a part of them.")
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(ids))
    towards = _directions(queries)
    best = np.full((len(queries), k), _LOWEST)
    start = 0
    for block in documents:
        _refuse_count(start + len(block), len(ids), whole=False)
        for low in range(0, len(block), _DOCUMENTS):
            rows = _directions(block[low : low + _DOCUMENTS])
            here = slice(start, start + len(rows))
            for first in range(0, len(queries), _QUERIES):
                some = slice(first, first + _QUERIES)
                keys = _keys(towards[some] @ rows.T, place[here])
                (asking,) = np.nonzero((own[some] >= here.start) & (own[some] < here.stop))
                keys[asking, own[some][asking] - start] = _LOWEST
                best[some] = np.partition(np.hstack([best[some], keys]), -k, axis=1)[:, -k:]
            start = here.stop
    _refuse_count(start, len(ids), whole=True)
    best = np.sort(best, axis=1)[:, ::-1]
    return np.where(best == _LOWEST, NOTHING, order[best & ((1 << _PLACES) - 1)])


def _directions(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1, zero where they are zero, NaN where a coordinate is no number."""
    wide = rows.astype(np.float64)
    wide[~np.isfinite(wide).all(axis=1)] = np.nan
    return np.asarray(to_unit_rows(wide))


def _keys(cosines: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers that are ordered like cosines (q, m), and like places (m,) where those are equal."""
    known = np.isfinite(cosines)
    steps = np.rint(np.where(known, cosines, 0.0) * _STEP).astype(np.int64)
    return np.where(known, (steps << _PLACES) | places, _LOWEST)


def _refuse_count(rows: int, documents: int, *, whole: bool) -> None:
    if rows > documents or (whole and rows < documents):
        raise InputError(f"got {rows:,} rows of {documents:,} documents; give one for each.")
