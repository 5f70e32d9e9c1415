"""The nearest neighbours of every row of a whole set: exact, or by an HNSW index of faiss with its recall stated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.errors import InputError, MissingExtra
from isotrope.statistics.neighbourhoods import to_cosines
from isotrope.statistics.neighbours import nearest

#: Links of a row, and rows that are looked at when the index is built and searched: recall of 0.99 on embeddings.
_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 80, 128

#: Rows whose exact neighbours tell the recall.
_CHECKED = 500


class FoundNeighbours(NamedTuple):
    """The nearest others of each row by cosine, nearest first.

    which: (n, k), their places; −1 where an index found fewer. cosine: (n, k), NaN there. recall: share of the exact
    neighbours of some rows that were found, 1 where the search is exact. method: how they were found, in words.
    """

    which: NDArray[np.int64]
    cosine: NDArray[np.float64]
    recall: float
    method: str


def find_neighbours(rows: NDArray[Any], k: int = 10, *, exact: bool = True, seed: int = 0) -> FoundNeighbours:
    """Find the k nearest other rows of each row by cosine.

    Args:
        rows: Shape (n, d), finite and not zero.
        k: How many, fewer than there are rows.
        exact: By brute force, whose time grows with n²; otherwise by an HNSW index of faiss, whose recall is measured
            against exact search for 500 rows.
        seed: Selects these rows.

    Raises:
        InputError: If there are not more than k rows.
        MissingExtra: If an index is wanted and faiss is not installed.

    Examples:
        >>> found = find_neighbours(np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]]), 1)
        >>> found.which.tolist(), found.recall, found.method
        ([[1], [0], [1]], 1.0, 'exact')
    """
    n = len(rows)
    if not 1 <= k < n:
        raise InputError(f"got k = {k} for {n:,} rows, expected 1 to {n - 1:,}.")
    unit = to_unit_rows(np.asarray(rows, np.float64))
    if exact:
        which, distance = nearest(unit, k)
        return FoundNeighbours(which, to_cosines(distance), 1.0, "exact")
    which, cosine = _search_graph(unit.astype(np.float32), k)
    checked = np.sort(np.random.default_rng(seed).choice(n, min(n, _CHECKED), replace=False))
    truth = nearest(unit, k, checked).which
    recall = float((which[checked][:, :, None] == truth[:, None, :]).any(axis=2).sum() / truth.size)
    return FoundNeighbours(which, cosine, recall, f"faiss HNSW, recall {recall:.3f} on {len(checked)} rows")


def _search_graph(unit: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest others of each unit row, (n, k), by a graph index; the row itself is left out of its own list."""
    try:
        import faiss
    except ImportError:
        raise MissingExtra("faiss-cpu", "quantize", "searching by an index") from None
    index = faiss.IndexHNSWFlat(unit.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = _BUILD_WIDTH, max(_SEARCH_WIDTH, 2 * k)
    index.add(unit)
    scores, places = index.search(unit, k + 1)
    other = places != np.arange(len(unit))[:, None]
    # Where the row did not find itself the last one goes instead.
    other &= np.cumsum(other, axis=1) <= k
    found, cosine = places[other].reshape(-1, k), scores[other].reshape(-1, k).astype(np.float64)
    return found.astype(np.int64), np.where(found >= 0, cosine, np.nan)
