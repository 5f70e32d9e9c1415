"""95 % intervals over sequences: a grouped jackknife that takes its bias out.

Rows of one sequence are not independent, and on near-isotropic spaces the bias of a spectral measure is many
standard errors, where the bootstrap's coverage falls to nothing. So whole groups of sequences are left out in turn.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.compute.threads import slice_rows
from isotrope.errors import Undefined
from isotrope.measures.record import Measure
from isotrope.quantization.cells import Cells
from isotrope.readings.heavy_tails import compute_widening, tail_index
from isotrope.readings.queries import NO_SEARCH, SearchInputs
from isotrope.readings.share_intervals import widen_for_share
from isotrope.statistics import (
    Moments,
    Points,
    QueriedPoints,
    Sample,
    SequenceStatistics,
    TextLengths,
    TokenStatistics,
    prepare_rows,
)
from isotrope.statistics.usable_rows import UsableRows

#: Groups that are left out in turn; below two sequences for each there is no interval.
GROUPS = 20

#: How much a slow bias shrinks at least when the rows are doubled: at the edge of an isotropic spectrum √2, a little
#: less with few rows. A rate fitted to a half and a quarter of the rows is too noisy: there, where it decides, a tenth
#: too much leaves the truth out (coverage 50 in 100).
_SLOWEST = 4.0 / 3.0

#: With fewer rows, half of them do not fill a spectrum, and there is no interval. With less than ample ones the
#: extrapolation may go too far, and the interval reaches back to the value itself.
_ROWS_PER_DIMENSION, _AMPLE_ROWS_PER_DIMENSION = 2, 10

#: Rows whose distances from the mean row are taken at once.
_ROWS_AT_ONCE = 1024

#: Bytes of the scatter matrices of all groups up to which they are kept; wider ones are computed again when needed.
KEPT_BYTES = 256_000_000

#: A practically infinite number of rows: an interval is about the space that they would fill.
_ENDLESS = 10**12

#: Share of the squared length below which all but one group would be lost in the rounding of a difference.
_LOST = 1e-6

_T = float(stats.t.ppf(0.975, GROUPS - 1))


class Interval(NamedTuple):
    """Ends of a 95 % interval; NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)

#: Needs whose values are those of the sample alone, however many sequences there are.
_OF_THE_SAMPLE = ("spectra", "sample", "cells", "queries", "texts")

_KINDS: dict[str, Any] = {
    "moments": Moments,
    "tokens": TokenStatistics,
    "sequences": SequenceStatistics,
}


class JackknifeGroups:
    """A sample's sequences, dealt out to GROUPS groups in the order of their hash; queries likewise."""

    def __init__(self, sample: Sample, needs: Collection[str], search: SearchInputs = NO_SEARCH) -> None:
        self.sample, self.needs = sample, needs
        self.queries, self.text_lengths = search

    @cached_property
    def _group(self) -> NDArray[np.int64]:
        """The group of each row."""
        return _deal_out(self.sample)

    @cached_property
    def _parts(self) -> dict[str, list[Any]]:
        """The statistics of each group that are kept, by kind; one group of rows at a time, which serves all kinds."""
        kinds = [kind for kind in _KINDS if kind in self.needs and not (kind == "moments" and self._are_moments_large)]
        parts: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for g in range(GROUPS):
            rows = self._block(g)
            for kind in kinds:
                parts[kind].append(_KINDS[kind].of(rows))
        return parts

    def _block(self, group: int) -> UsableRows:
        """The rows of one group."""
        at = np.flatnonzero(self._group == group)
        return prepare_rows(self.sample.values[at], self.sample.rows.take(at))

    @property
    def _are_moments_large(self) -> bool:
        return 8 * self.sample.d**2 * GROUPS > KEPT_BYTES

    @cached_property
    def tail_index(self) -> float:
        """The tail index of the sequences' mean squared distance from the mean row: powers below it have a mean."""
        values, starts = self.sample.values, self.sample.rows.starts()
        mean, squares = values.mean(axis=0, dtype=np.float64), np.empty(len(values))
        for part in slice_rows(len(values), _ROWS_AT_ONCE):
            away = values[part] - mean
            squares[part] = compute_squared_lengths(away)
        return tail_index(np.add.reduceat(squares, starts) / np.diff(np.append(starts, len(values))))

    def widening(self, m: Measure) -> float:
        """How many times wider an interval is than with light tails of the rows' lengths; infinite where there is none.

        A measure averages the lengths to a power p. With α the tail index of squared lengths, that average exists where
        2α is above p, and has a variance where α is. Twenty groups of few rows show too little of such tails.
        """
        if m.length_power == 0 or self.sample.taken < 2 * GROUPS:
            return 1.0
        return compute_widening(self.tail_index, m.length_power)

    @cached_property
    def points(self) -> Points:
        """All rows of the sample, with the group of each."""
        return Points.of(self.sample.to_usable_rows(), self._group)

    @cached_property
    def queried(self) -> QueriedPoints | None:
        """The rows of the sample with the queries that search them."""
        if self.queries is None:
            return None
        asking = Points.of(self.queries.to_usable_rows(), _deal_out(self.queries))
        return QueriedPoints(self.points, asking)

    @cached_property
    def texts(self) -> TextLengths | None:
        """The rows of the sample with the lengths of their texts."""
        if not self.text_lengths:
            return None
        return TextLengths.of(self.points, self.text_lengths, self.queried)

    def split(self, need: str, cells: Cells | None = None) -> GroupSplit:
        """The statistic of all groups, of all but one, and of halves; cells are those of the points."""
        if need == "sample":
            return _split_points(self.points)
        if need in ("queries", "texts"):
            found = self.queried if need == "queries" else self.texts
            assert found is not None
            return _split_points(found)
        if cells is not None:
            return _split_points(cells)
        if need == "spectra":  # those of all sequences are there already
            spectra, ids = self.sample.spectra(), self.sample.rows.sequence
            return _split_parts([spectra.only(ids[self._group == g]) for g in range(GROUPS)].__getitem__)
        if need == "moments" and self._are_moments_large:
            return _split_parts(lambda g: Moments.of(self._block(g)), self._dominant)
        return _split_parts(self._parts.pop(need).__getitem__, self._dominant)

    @cached_property
    def _dominant(self) -> int | None:
        """The group that holds nearly all of the squared length, if there is one."""
        energy = np.zeros(GROUPS)
        for part in slice_rows(self.sample.n, _ROWS_AT_ONCE):
            rows = self.sample.values[part].astype(np.float64)
            np.add.at(energy, self._group[part], compute_squared_lengths(rows))
        largest = int(energy.argmax())
        return largest if np.delete(energy, largest).sum() < _LOST * energy[largest] else None


class GroupSplit(NamedTuple):
    """A statistic of all groups, the same with each group left out in turn, and, when asked, of two halves of them."""

    total: Any
    left_out: Iterator[Any]
    halves: Callable[[], list[Any]]


def _split_parts(part: Callable[[int], Any], dominant: int | None = None) -> GroupSplit:
    """A statistic from that of each group, by its number.

    A group is left out by subtraction, which takes one merge. Beside a dominant group the others are lost in the
    total's rounding, so what is left without it is summed from the others.
    """
    total = _sum(map(part, range(GROUPS)))
    tokens = isinstance(total, TokenStatistics)

    def leave_out(g: int) -> Any:
        if g != dominant:
            return total.table_without(part(g)) if tokens else total.without(part(g))
        rest = _sum(part(other) for other in range(GROUPS) if other != g)
        return rest.table if tokens else rest

    left_out = map(leave_out, range(GROUPS))
    return GroupSplit(total, left_out, lambda: [_sum(map(part, range(side, GROUPS, 2))) for side in (0, 1)])


def _deal_out(sample: Sample) -> NDArray[np.int64]:
    """The group of each row of a sample."""
    starts = sample.rows.starts()
    return np.repeat(np.arange(len(starts)) % GROUPS, np.diff(np.append(starts, sample.n)))


def _split_points(points: Points | Cells | QueriedPoints | TextLengths) -> GroupSplit:
    left_out = (points.leave_out(g) for g in range(GROUPS))
    return GroupSplit(points, left_out, lambda: [points.only(points.group % 2 == side) for side in (0, 1)])


def compute_intervals(
    measures: Sequence[Measure], values: Sequence[float], groups: JackknifeGroups, need: str, cells: Cells | None = None
) -> list[Interval]:
    """The interval of each measure of one need, whose values on all rows are given; cells: those that are needed.

    Where the sample holds S_s of S sequences, its bias is taken as S_s/S and its standard error as √(S_s/S) of what
    the sample shows, unless the value is the sample's own. Where the bias may shrink more slowly (`slow_bias`), the
    interval spans all rates from 1/n down to the slowest; where a sample does not tell (`unsure_bias`), everything from
    no bias to all that the sample shows. Where a measure depends on n by its nature (`at_n`), no bias is taken out; one
    that hangs on a single row (`unsure_bias` too) may be as far off as leaving it out shows, either way.
    A share of rows (`row_share`) has an interval at least as wide as that of independent rows.
    Where the rows' lengths have heavy tails, intervals of measures that average them (`length_power`) are wider; where
    the average does not exist, there is none.
    Those of cells are given the trained codebooks: other points in the same cells.
    """
    sample = groups.queries if need == "queries" and groups.queries is not None else groups.sample
    if not measures or sample.taken < 2 * GROUPS:
        return [NONE] * len(measures)
    total, left_out, halves_of = groups.split(need, cells)
    rows = sample.n / total.d
    share = 1.0 if need in _OF_THE_SAMPLE else sample.taken / sample.sequences
    whole = [_quantity(m, total) for m in measures]
    table = np.array([[_quantity(m, left) for m in measures] for left in left_out])
    halves = halves_of() if any(m.slow_bias for m in measures) else []
    found = []
    for m, value, theta, without in zip(measures, values, whole, table.T, strict=True):
        wider = groups.widening(m)
        if math.isinf(wider) or (m.slow_bias and rows < _ROWS_PER_DIMENSION):
            found.append(NONE)
            continue
        now = m.smooth.forward(value, theta) if m.smooth else value
        bias, error = jackknife(theta, without)
        biases = [0.0 if m.at_n else bias * share]
        if m.slow_bias:
            half = float(np.mean([_quantity(m, h) for h in halves]))
            biases.append((half - theta) / (_SLOWEST - 1.0) * share ** math.log2(_SLOWEST))
        if m.unsure_bias:
            biases += [-bias, bias] if m.at_n else [0.0, bias]
        elif m.slow_bias and rows < _AMPLE_ROWS_PER_DIMENSION:
            biases.append(0.0)
        margin = wider * _T * error * math.sqrt(share)
        ends = (now - max(biases) - margin, now - min(biases) + margin)
        if m.row_share:
            ends = widen_for_share(ends, value, sample.n)
        bounds = m.bounds(sample.n if m.at_n else _ENDLESS, total.d)
        low, high = np.clip(m.smooth.back(*ends) if m.smooth else ends, *bounds)
        found.append(Interval(float(low), float(high)) if math.isfinite(high) else NONE)
    return found


def jackknife(theta: float, without: NDArray[np.float64]) -> tuple[float, float]:
    """Bias and standard error of a value, from what it is with each group left out, (GROUPS,)."""
    g, middle = len(without), float(np.mean(without))
    return (g - 1) * (middle - theta), math.sqrt((g - 1) / g * float(np.sum((without - middle) ** 2)))


def _quantity(m: Measure, statistic: Any) -> float:
    try:
        return m.smooth.of(statistic) if m.smooth else m.value(statistic)
    except Undefined:
        return math.nan


def _sum(parts: Iterator[Any]) -> Any:
    return reduce(operator.iadd, parts, next(parts) + next(parts))  # a new value, which may be changed
