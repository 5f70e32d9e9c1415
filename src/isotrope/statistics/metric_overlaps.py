"""How many of the nearest rows are the same by cosine, by inner product and by Euclidean distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.compute.threads import map_parts, slice_rows

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Pairs of metrics, in the order of the columns.
PAIRS = ("cosine_inner", "cosine_euclidean", "inner_euclidean")

#: Rows whose neighbours are compared at most: the mean of so many shares is known to 0.01.
ASKING = 1_000

#: Rows whose lengths differ by no more than this share of the longest are of equal length, but for rounding.
_EQUAL = 1e-6

_AT_ONCE = 125


class MetricOverlaps(NamedTuple):
    """Shares of common neighbours of some rows, (m, 3) in the order of PAIRS, and the group of each row, (m,)."""

    shares: Matrix
    group: Indices

    def leave_out(self, group: int) -> MetricOverlaps:
        """Those of the rows that are not in a group; other rows find their neighbours among all."""
        kept = self.group != group
        return MetricOverlaps(self.shares[kept], self.group[kept])


def compute_metric_overlaps(rows: Matrix, asking: Indices, k: int) -> Matrix:
    """Share of the k nearest other rows that two metrics have in common, for the asking rows, (n, d) -> (m, 3).

    Rows of equal length have the same neighbours by all three, so that nothing is searched.

    >>> compute_metric_overlaps(np.array([[1.0, 0.0], [9.0, 1.0], [0.5, 0.0]]), np.array([0]), 1).tolist()
    [[0.0, 1.0, 0.0]]
    """
    squares = compute_squared_lengths(rows)
    lengths = np.sqrt(squares)
    if lengths.min(initial=np.inf) >= (1.0 - _EQUAL) * lengths.max(initial=0.0):
        return np.ones((len(asking), len(PAIRS)))

    def ask(part: slice) -> Matrix:
        at = asking[part]
        inner = rows[at] @ rows.T
        inner[np.arange(len(at)), at] = -np.inf
        lists = [_find_largest(values, k) for values in (inner / lengths, inner, 2.0 * inner - squares)]
        return np.stack([_compute_shares(lists[a], lists[b]) for a, b in ((0, 1), (0, 2), (1, 2))], axis=1)

    return np.concatenate([np.empty((0, len(PAIRS))), *map_parts(ask, slice_rows(len(asking), _AT_ONCE))])


def _find_largest(values: Matrix, k: int) -> Indices:
    return np.argpartition(values, values.shape[1] - k, axis=1)[:, -k:]


def _compute_shares(one: Indices, other: Indices) -> NDArray[np.float64]:
    """Share of each row's entries that both lists have, (m, k) and (m, k) -> (m,)."""
    return np.asarray((one[:, :, None] == other[:, None, :]).sum(axis=(1, 2)) / one.shape[1])
