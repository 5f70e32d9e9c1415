"""What lists of nearest neighbours tell of rows: hubs, near-duplicates, outliers and islands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Neighbours of a row that count, for measures of search.
K = 10

#: Cosine from which two rows are near-duplicates.
NEAR_DUPLICATE = 0.99

#: Median absolute deviations above the median from which a row is an outlier.
OUTLIER = 6.0

#: Rows of the mutual neighbour graph's smallest component that is no island.
ISLAND = 15


def count_occurrences(which: Indices, n: int) -> Indices:
    """How often each of n rows is in the lists of nearest neighbours, (m, k) -> (n,).

    >>> count_occurrences(np.array([[1], [0], [1]]), 3).tolist()
    [1, 2, 0]
    """
    return np.bincount(which.ravel(), minlength=n)


def to_cosines(distance: Matrix) -> Matrix:
    """Cosines of unit rows from their Euclidean distances.

    >>> to_cosines(np.array([0.0, 1.0])).tolist()
    [1.0, 0.5]
    """
    return np.asarray(1.0 - distance**2 / 2.0)


def score_outliers(distance: Vector) -> Vector:
    """How far each row is from others: median absolute deviations of the log distance above its median, (n,) -> (n,).

    A row is an outlier from a score of `OUTLIER` on. Where more than half of the distances are equal the deviation
    is 0, and so are all scores: then nothing tells what is usual.

    Args:
        distance: To the k-th nearest neighbour of each row, above 0. A power of it gives the same scores.
    """
    logs = np.log(distance)
    away = logs - np.median(logs)
    deviation = float(np.median(np.abs(away)))
    return away / deviation if deviation > 0.0 else np.zeros_like(away)


def find_near_duplicate_groups(which: Indices, cosine: Matrix, least: float = NEAR_DUPLICATE) -> list[Indices]:
    """Groups of rows that are connected by neighbours of at least this cosine, the largest first.

    Args:
        which: The nearest others of each row, (n, k).
        cosine: Their cosines, (n, k).
        least: The cosine from which two rows are near-duplicates.

    Returns:
        The rows of each group of two or more, ascending.

    >>> [g.tolist() for g in find_near_duplicate_groups(np.array([[1], [0], [1]]), np.array([[0.995], [0.995], [0.3]]))]
    [[0, 1]]
    """
    near = cosine >= least
    rows = np.repeat(np.arange(len(which)), near.sum(axis=1))
    label = _label_components(rows, which[near], len(which))
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    several = [group for group in groups if len(group) > 1]
    return sorted(several, key=lambda group: (-len(group), int(group[0])))


def find_island_sizes(which: Indices) -> Indices:
    """Size of each row's component of the mutual neighbour graph, (n, k) -> (n,).

    Two rows are joined where each is among the nearest of the other.

    >>> find_island_sizes(np.array([[1], [0], [1]])).tolist()
    [2, 2, 1]
    """
    n, k = which.shape
    rows = np.repeat(np.arange(n), k)
    graph = sparse.csr_array((np.ones(n * k, np.int8), (rows, which.ravel())), shape=(n, n))
    mutual = graph.multiply(graph.T).tocoo()
    label = _label_components(mutual.row, mutual.col, n)
    return np.bincount(label)[label]


def _label_components(one: Indices, other: Indices, n: int) -> Indices:
    """The number of the component that each of n rows is in, where rows `one` are joined to rows `other`."""
    graph = sparse.csr_array((np.ones(len(one), np.int8), (one, other)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
