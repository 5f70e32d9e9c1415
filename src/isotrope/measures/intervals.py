"""95 % intervals over sequences: a grouped jackknife that takes its bias out.

Rows of one sequence are not independent, and on near-isotropic spaces the bias of a spectral measure is many
standard errors, where the bootstrap's coverage falls to nothing. So whole groups of sequences are left out in turn.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures.measure import Measure
from isotrope.statistics import (
    Moments,
    Sample,
    SequenceSpectra,
    SequenceStatistics,
    TokenStatistics,
    block,
)

#: Groups that are left out in turn; below two sequences for each there is no interval.
GROUPS = 20

#: How much a slow bias shrinks at least when the rows are doubled (the edge of an isotropic spectrum: √2, less with
#: few rows).
_SLOWEST = 4.0 / 3.0

#: Rows that are as good as endless: an interval is about the space that they would fill.
_ENDLESS = 10**12

_T = float(stats.t.ppf(0.975, GROUPS - 1))


class Interval(NamedTuple):
    """Ends of a 95 % interval; NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)

_KINDS: dict[str, Any] = {
    "moments": Moments,
    "tokens": TokenStatistics,
    "sequences": SequenceStatistics,
    "spectra": SequenceSpectra,
}


def grouped(sample: Sample, need: str) -> list[Any]:
    """The statistic of each of GROUPS groups of the sample's sequences, dealt out in the order of their hash."""
    starts = sample.rows.starts()
    length = np.diff(np.append(starts, sample.n))
    group = np.repeat(np.arange(len(starts)) % GROUPS, length)
    parts = (np.flatnonzero(group == g) for g in range(GROUPS))
    return [_KINDS[need].of(block(sample.values[p], sample.rows.take(p))) for p in parts]


def _left_out(total: Any, parts: Sequence[Any]) -> Iterator[Any]:
    """The statistic of all groups but one, for each in turn."""
    for part in parts:
        yield total.table_without(part) if isinstance(total, TokenStatistics) else total.without(part)


def intervals(measures: Sequence[Measure], values: Sequence[float], sample: Sample, need: str) -> list[Interval]:
    """The interval of each measure of one need, whose values on all rows are given.

    Where the sample holds S_s of S sequences, its bias is taken as S_s/S and its standard error as √(S_s/S) of what
    the sample shows.
    """
    if not measures or sample.taken < 2 * GROUPS:
        return [NONE] * len(measures)
    parts = grouped(sample, need)
    total = _sum(parts)
    share = sample.taken / sample.sequences
    whole = [_value(m, total) for m in measures]
    table = np.array([[_value(m, left) for m in measures] for left in _left_out(total, parts)])
    slow = any(m.slow_bias for m in measures)
    halves = [_sum(parts[0::2]), _sum(parts[1::2])] if slow else []
    found = []
    for m, value, theta, without in zip(measures, values, whole, table.T, strict=True):
        p = m.smooth_power
        centre, error = jackknife(value**p, theta**p, without**p, share)
        ends = [centre]
        if m.slow_bias:
            half = float(np.mean([_value(m, h) ** p for h in halves]))
            ends.append(_slowest(value**p, theta**p, half, share))
        low, high = m.bounds(_ENDLESS, total.d)
        ends = [min(ends) - _T * error, max(ends) + _T * error]
        found.append(Interval(*(float(np.clip(e, low**p, high**p)) ** (1.0 / p) for e in ends)))
    return found


def jackknife(value: float, theta: float, without: Any, share: float) -> tuple[float, float]:
    """The value with its bias taken out, and its standard error.

    value: on all rows. theta: on the sample. without: (GROUPS,), on the sample with each group left out.
    """
    g = len(without)
    middle = float(np.mean(without))
    bias = (g - 1) * (middle - theta) * share
    error = math.sqrt((g - 1) / g * float(np.sum((np.asarray(without) - middle) ** 2)) * share)
    return value - bias, error


def _slowest(value: float, theta: float, half: float, share: float) -> float:
    """The value extrapolated to endless rows, for a bias that shrinks as slowly as any (by 4/3 with twice the rows).

    half: mean over the two halves of the sample. A rate fitted to a half and a quarter is too noisy: at the
    isotropic end, where it decides, a tenth too much leaves the truth out.
    """
    return value - (half - theta) / (_SLOWEST - 1.0) * float(share ** math.log2(_SLOWEST))


def _value(m: Measure, statistic: Any) -> float:
    try:
        return m.value(statistic)
    except Undefined:
        return math.nan


def _sum(parts: Sequence[Any]) -> Any:
    return reduce(operator.add, parts)
