"""How many of the nearest rows are the same by cosine, by inner product and by Euclidean distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.compute.threads import map_parts, slice_rows

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Pairs of metrics, in the order of the columns: cosine is 0, inner product 1, Euclidean distance 2.
PAIRS = {"cosine_inner": (0, 1), "cosine_euclidean": (0, 2), "inner_euclidean": (1, 2)}

#: Rows whose neighbours are compared at most: the mean of so many shares is known to 0.01.
ASKING = 1_000

#: Neighbours that are listed for each that is wanted, so that enough are left when a group of rows is left out.
_LISTED = 2

#: Rows whose lengths differ by no more than this share of the longest are of equal length, but for rounding.
_EQUAL = 1e-6

_AT_ONCE = 125


class MetricNeighbours(NamedTuple):
    """The nearest others of some rows by three metrics.

    which: (m, 3, c), their places, nearest first; (m, 3, 0) where rows are of equal length, so that all three agree.
    asking: (m,), the places of the rows that ask. group: (n,), the group of each row, −1 where it stays in always.
    """

    which: Indices
    asking: Indices
    group: Indices

    def compute_overlaps(self, k: int, without: int | None = None) -> Matrix:
        """Share of the k nearest that two metrics have in common, (m, 3) in the order of PAIRS.

        without: a group of rows that neither ask nor answer.
        """
        lists = self.which
        if without is not None:
            lists = lists[self.group[self.asking] != without]
        if not lists.shape[2]:
            return np.ones((len(lists), len(PAIRS)))
        stays = np.ones(lists.shape, bool) if without is None else self.group[lists] != without
        lists = np.where(stays & (np.cumsum(stays, axis=2) <= k), lists, -1)
        return np.stack([_count_common(lists[:, a], lists[:, b]) / k for a, b in PAIRS.values()], axis=1)


def find_metric_neighbours(rows: Matrix, asking: Indices, group: Indices, k: int) -> MetricNeighbours:
    """The nearest other rows of the asking ones, (n, d), by cosine, inner product and Euclidean distance; n above k.

    >>> rows = np.array([[1.0, 0.0], [9.0, 1.0], [0.5, 0.0]])
    >>> find_metric_neighbours(rows, np.array([0]), np.zeros(3, int), 1).compute_overlaps(1).tolist()
    [[0.0, 1.0, 0.0]]
    """
    squares = compute_squared_lengths(rows)
    lengths = np.sqrt(squares)
    count = min(_LISTED * k, len(rows) - 1)
    if lengths.min(initial=np.inf) >= (1.0 - _EQUAL) * lengths.max(initial=0.0):
        return MetricNeighbours(np.empty((len(asking), 3, 0), np.int64), asking, group)

    def ask(part: slice) -> Indices:
        at = asking[part]
        inner = rows[at] @ rows.T
        inner[np.arange(len(at)), at] = -np.inf
        scores = (inner / lengths, inner, 2.0 * inner - squares)
        return np.stack([_find_largest(values, count) for values in scores], axis=1)

    found = map_parts(ask, slice_rows(len(asking), _AT_ONCE))
    return MetricNeighbours(np.concatenate([np.empty((0, 3, count), np.int64), *found]), asking, group)


def _find_largest(values: Matrix, count: int) -> Indices:
    """Where the largest numbers of each row are, the largest first, (m, n) -> (m, count)."""
    at = np.argpartition(values, values.shape[1] - count, axis=1)[:, -count:]
    order = np.argsort(-np.take_along_axis(values, at, axis=1), axis=1, kind="stable")
    return np.take_along_axis(at, order, axis=1)


def _count_common(one: Indices, other: Indices) -> NDArray[np.int64]:
    """How many places both lists of each row have, (m, c) and (m, c) -> (m,); −1 is none."""
    return np.asarray(((one[:, :, None] == other[:, None, :]) & (one >= 0)[:, :, None]).sum(axis=(1, 2)))
