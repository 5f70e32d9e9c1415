"""Sampled rows with what several measures share, computed once: unit rows, distinct rows, neighbours, pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths, mix_ids
from isotrope.compute.threads import slice_rows
from isotrope.errors import InputError, MergeError
from isotrope.statistics.metric_overlaps import ASKING, MetricNeighbours, find_metric_neighbours
from isotrope.statistics.neighbourhoods import K
from isotrope.statistics.neighbours import Neighbours, nearest, without
from isotrope.statistics.saved_arrays import LARGEST, require
from isotrope.statistics.usable_rows import UsableRows, prepare_rows

Matrix = NDArray[np.float64]

#: Neighbours that measures use at most, and how many are looked for, so that enough are left when a group is left out.
NEIGHBOURS, _LISTED = 20, 40

#: Rows that differ by less than this share of their length differ by rounding alone.
_SAME = 2.0**-40

#: Rows compared with all others at once.
_COMPARED = 256


@dataclass(eq=False)
class Points:
    """The rows of a sample, in the order of their sequences' ids, and what measures make of them.

    A value with an empty element `Points.empty(d)` and `+`. rows: (n, d), float64. sequence: (n,), their sequences'
    ids. group: (n,), the group that each row is left out with for intervals, −1 where it stays in always.

    >>> Points.of(prepare_rows(np.array([[3.0, 4.0], [0.0, 2.0]]))).unit.rows.tolist()
    [[0.6, 0.8], [0.0, 1.0]]
    """

    rows: Matrix
    sequence: NDArray[np.uint64]
    group: NDArray[np.int64]
    _whole: tuple[Points, int] | None = None  # the points that these are with one group left out
    _kernels: dict[float, Matrix] = field(default_factory=dict)

    @classmethod
    def empty(cls, d: int) -> Points:
        return cls(np.empty((0, d)), np.empty(0, np.uint64), np.empty(0, np.int64))

    @classmethod
    def of(cls, rows: UsableRows, group: NDArray[np.int64] | None = None) -> Points:
        """Some rows as points; group: (n,), by default one for all."""
        group = np.zeros(len(rows), np.int64) if group is None else group
        return cls(rows.values.astype(np.float64, copy=False), rows.rows.sequence, group)._sort()

    def _sort(self) -> Points:
        return self.only(np.argsort(self.sequence, kind="stable"))

    def only(self, at: NDArray[Any]) -> Points:
        """The rows at these places, by index or mask."""
        return Points(self.rows[at], self.sequence[at], self.group[at])

    def scale(self, factor: float) -> Points:
        """The rows times a factor."""
        return Points(self.rows * factor, self.sequence, self.group)

    @property
    def n(self) -> int:
        return len(self.sequence)

    @property
    def d(self) -> int:
        return int(self.rows.shape[1])

    def leave_out(self, group: int) -> Points:
        """These points without those of a group, which reuse what was computed for all."""
        return _PointsWithout(self, group)

    @cached_property
    def unit(self) -> Points:
        """The rows divided by their lengths."""
        if self._whole is not None:
            whole, group = self._whole
            return whole.unit.leave_out(group)
        lengths = np.sqrt(compute_squared_lengths(self.rows))
        return Points(self.rows / lengths[:, None], self.sequence, self.group)

    @cached_property
    def distinct(self) -> Points:
        """Each different row once; rows that differ by rounding alone are the same."""
        if self._whole is not None:
            whole, group = self._whole
            return whole.distinct.leave_out(group)
        places, group_of = self._distinct_places
        return self if len(places) == self.n else Points(self.rows[places], self.sequence[places], group_of)

    @cached_property
    def distinct_index(self) -> NDArray[np.int64]:
        """The place in `distinct` of the row that each row is equal to, (n,)."""
        first, which = self._equal_rows
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[which]

    @cached_property
    def _equal_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each different row is for the first time, in no order, and which of them each row is."""
        lengths = np.sqrt(compute_squared_lengths(self.rows))[:, None]
        # Whole numbers, summed up with random weights modulo 2^64: of 20,000 rows two differ and agree in this with a
        # probability of 1e-11.
        weights = np.random.default_rng(0).integers(1 << 63, size=self.d + 1, dtype=np.int64)
        names = np.rint(np.log(lengths) / _SAME).astype(np.int64).ravel() * weights[-1]
        for part in slice_rows(self.n, _COMPARED):
            keys = np.rint(self.rows[part] / (lengths[part] * _SAME)).astype(np.int64)
            names[part] += keys @ weights[:-1]
        _, first, which = np.unique(names, return_index=True, return_inverse=True)
        return first, which

    @cached_property
    def _distinct_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each different row is for the first time, ascending, and the group that it is left out with."""
        first, which = self._equal_rows
        # A row that several groups have stays when one of them goes.
        low, high = (np.full(len(first), fill) for fill in (np.iinfo(np.int64).max, -1))
        np.minimum.at(low, which, self.group)
        np.maximum.at(high, which, self.group)
        order = np.argsort(first)
        return first[order], np.where(low == high, low, -1)[order]

    @cached_property
    def metric_overlaps(self) -> Matrix:
        """Shares of the nearest rows that two metrics have in common, (m, 3), for some rows of different directions."""
        if self._whole is not None:
            whole, group = self._whole
            return whole._metric_neighbours.compute_overlaps(K, without=group)
        return self._metric_neighbours.compute_overlaps(K)

    @cached_property
    def _metric_neighbours(self) -> MetricNeighbours:
        places, group = self.unit._distinct_places
        asking = np.sort(np.argsort(mix_ids(self.sequence[places], 0), kind="stable")[:ASKING])
        return find_metric_neighbours(self.rows[places], asking, group, K)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The nearest other rows of each row: at least NEIGHBOURS of them, or all there are."""
        if self._whole is not None:
            whole, group = self._whole
            return without(whole.neighbours, whole.rows, whole.group == group, min(NEIGHBOURS, self.n - 1))
        return nearest(self.rows, max(0, min(_LISTED, self.n - 1)))

    @cached_property
    def mean_squared_distances(self) -> NDArray[np.float64]:
        """Mean squared distance of each row to the other rows, (n,)."""
        if self._whole is None:
            away, kept = self._centred.squares, self.n
        else:
            whole, group = self._whole
            stays, kept = whole.group != group, self.n
            rows, squares = whole._centred
            shift = -rows[~stays].sum(axis=0) / kept  # the mean of those that stay, from that of all
            away = (squares - 2.0 * (rows @ shift))[stays] + float(shift @ shift)
        return np.asarray((away + away.mean()) * kept / (kept - 1))

    @cached_property
    def _centred(self) -> _RowsAboutMean:
        rows = self.rows - self.rows.mean(axis=0)
        return _RowsAboutMean(rows, compute_squared_lengths(rows))

    def log_kernel(self, t: float) -> Matrix:
        """log Σ exp(−‖x_i − x_j‖²/t) over pairs of distinct rows by group, (groups, groups)."""
        if t not in self._kernels:
            if self._whole is None:
                self._kernels[t] = log_kernel_sums(self.rows, self.group, t)
            else:
                whole, group = self._whole
                self._kernels[t] = np.delete(np.delete(whole.log_kernel(t), group, 0), group, 1)
        return self._kernels[t]

    def check(self, other: Points) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge points of width {other.d} and {self.d}.")

    def __add__(self, other: Points) -> Points:
        self.check(other)
        mine, theirs = self.arrays(), other.arrays()
        return Points.from_arrays({k: np.concatenate([mine[k], theirs[k]]) for k in mine})._sort()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        return {"rows": self.rows, "sequence": self.sequence, "group": self.group}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Points:
        """The state that `arrays` returned."""
        rows = require(arrays, "rows", np.float64, (None, None), within=LARGEST)
        sequence = require(arrays, "sequence", np.uint64, (len(rows),))
        return cls(rows, sequence, require(arrays, "group", np.int64, (len(rows),), least=-1))


class _RowsAboutMean(NamedTuple):
    """Rows less their mean, (n, d), and their squared lengths, (n,)."""

    rows: Matrix
    squares: NDArray[np.float64]


class _PointsWithout(Points):
    """Points with one group left out; the rows are copied only for what asks for them."""

    def __init__(self, whole: Points, group: int) -> None:
        kept = whole.group != group
        self.sequence, self.group = whole.sequence[kept], whole.group[kept]
        self._whole, self._kernels = (whole, group), {}

    @property
    def d(self) -> int:
        assert self._whole is not None
        return self._whole[0].d

    @cached_property
    def rows(self) -> Matrix:  # type: ignore[override]
        assert self._whole is not None
        whole, group = self._whole
        rows: Matrix = whole.rows[whole.group != group]
        return rows


@dataclass(frozen=True, eq=False)
class Image:
    """Rows and what a repair made of them, row by row. A value with `+`.

    rows: n points. image: as many, in the same order, of any width.
    """

    rows: Points
    image: Points

    @classmethod
    def of(cls, rows: Any, image: Any) -> Image:
        """Rows, (n, d), and their image, (n, e); pairs with a row that is zero or not finite are left out."""
        before, after = prepare_rows(rows), prepare_rows(image)
        sizes = [len(b) + b.zero + b.nonfinite for b in (before, after)]
        if sizes[0] != sizes[1]:
            raise InputError(f"got {sizes[0]} rows and an image of {sizes[1]}; give one row for each.")
        both = np.intersect1d(before.rows.sequence, after.rows.sequence)
        parts = (Points.of(b).only(np.isin(b.rows.sequence, both)) for b in (before, after))
        return cls(*parts)

    def __add__(self, other: Image) -> Image:
        return Image(self.rows + other.rows, self.image + other.image)


def log_kernel_sums(rows: Matrix, group: NDArray[np.int64], t: float) -> Matrix:
    """log Σ exp(−‖x_i − x_j‖²/t) over i in one group and j ≠ i in another, rows (n, d) -> (groups, groups).

    >>> log_kernel_sums(np.array([[0.0], [1.0]]), np.array([0, 1]), 1.0).tolist()
    [[-inf, -1.0], [-1.0, -inf]]
    """
    centred = rows - rows.mean(axis=0)
    squares = compute_squared_lengths(centred)
    member = np.eye(int(group.max(initial=0)) + 1)[group]
    sums, top = np.zeros((member.shape[1],) * 2), -np.inf
    for start in range(0, len(rows), _COMPARED):
        here = slice(start, start + _COMPARED)
        # Each pair once: the rows here among themselves and with those that follow.
        away = centred[here] @ centred[start:].T
        away *= -2.0
        away += squares[start:]
        away += squares[here, None]
        np.maximum(away, 0.0, out=away)
        away /= -t
        np.fill_diagonal(away, -np.inf)
        # Relative to the closest pair so far, so that nothing underflows however far the rows are apart.
        peak = max(top, float(away.max()))
        sums *= np.exp(top - peak) if np.isfinite(top) else 0.0
        top = peak
        away -= top
        np.exp(away, out=away)
        size = away.shape[0]
        sums += member[here].T @ (away[:, :size] @ member[here])
        others = member[here].T @ (away[:, size:] @ member[start + size :])
        sums += others + others.T
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + top)
