"""Intervals and verdicts over the layers of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from isotrope.measures import get
from isotrope.readings.intervals import GROUPS, jackknife
from isotrope.statistics import Summary, TokenStatistics, prepare_rows
from isotrope.statistics.token_tables import frequent
from isotrope.studies.result import depth_correlation
from isotrope.studies.verdict import LEVEL, Outcome, depth_interval, judge_interval, widen_factor

if TYPE_CHECKING:
    import pandas as pd


class Estimate(NamedTuple):
    """A number and its 95 % interval, NaN where there is none."""

    value: float
    low: float
    high: float

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low)

    @property
    def evidence(self) -> str:
        """The interval in words, empty where there is none."""
        return f"95 % interval {self.low:.3g} to {self.high:.3g}" if math.isfinite(self.low + self.high) else ""


def compute_difference(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two numbers with the interval of independent estimates.

    Layers read the same text, which makes their errors alike and this interval rather too wide.

    References:
        Zou and Donner 2008, Construction of confidence limits about effect measures: a general approach.

    >>> compute_difference(Estimate(5.0, 2.0, 8.0), Estimate(1.0, -3.0, 5.0))
    Estimate(value=4.0, low=-1.0, high=9.0)
    """
    value = one.value - other.value
    low = value - math.hypot(one.value - one.low, other.high - other.value)
    return Estimate(value, low, value + math.hypot(one.high - one.value, other.value - other.low))


class Trend(NamedTuple):
    """How a measure changes with depth: its rank correlation with depth, and the last layer less the first."""

    correlation: Estimate
    change: Estimate

    @classmethod
    def of(cls, values: pd.Series[Any], low: pd.Series[Any], high: pd.Series[Any]) -> Trend:
        """The trend of a measure from its values in all layers and their intervals."""
        correlation = Estimate(depth_correlation(values), *depth_interval(values.tolist(), low.tolist(), high.tolist()))
        first, last = (Estimate(float(values.iloc[at]), float(low.iloc[at]), float(high.iloc[at])) for at in (0, -1))
        return cls(correlation, compute_difference(last, first))

    @property
    def evidence(self) -> str:
        """Both intervals in words."""
        if not self.correlation.evidence:
            return ""
        return f"correlation: {self.correlation.evidence}; last layer less first: {self.change.evidence}"

    def judge(self, sign: int = 1) -> Outcome:
        """Judge the claim that the measure rises with depth, or for a sign of −1 that it falls.

        It agrees if both intervals say so, contradicts if one says the opposite and the other does not agree, and is
        undecided where the two disagree: a measure that rises through most layers may still end where it began.
        """
        both = [one if sign > 0 else -one for one in self]
        outcomes = {judge_interval(one.low, one.high) for one in both}
        if len(outcomes) == 1:
            return outcomes.pop()
        return "contradicts" if "contradicts" in outcomes and "agrees" not in outcomes else "undecided"


def judge_every(estimates: Sequence[Estimate], border: float = 0.0) -> Outcome:
    """Judge the claim that every one of several numbers is above a border.

    It agrees if all intervals are above it, and contradicts if one is below it even at the level that is corrected for
    their number (Bonferroni).

    >>> sure, open, against = Estimate(1.0, 0.5, 1.5), Estimate(0.1, -0.1, 0.3), Estimate(-2.0, -2.2, -1.8)
    >>> judge_every([sure, sure]), judge_every([sure, open]), judge_every([sure, against])
    ('agrees', 'undecided', 'contradicts')
    """
    outcomes = [judge_interval(one.low, one.high, border=border) for one in estimates]
    wider = widen_factor(len(outcomes))
    if any(one.value + wider * (one.high - one.value) < border for one in estimates):
        return "contradicts"
    return "agrees" if outcomes and set(outcomes) == {"agrees"} else "undecided"


def compute_share_intervals(summary: Summary, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Compute 95 % intervals of shares over the types in the window, by leaving out groups of sampled sequences.

    The types are those that are in the window of all texts. The error of the sample is scaled to all texts, and the
    interval is around the value of all texts.

    Args:
        summary: the statistics of a layer, with its token types and its sample.
        names: measures over token types, such as "mean_share".

    Returns:
        The two ends for each name; NaN where there are too few sequences.
    """
    tokens, sample = summary.tokens, summary.sample
    if tokens is None or sample is None or sample.taken < 2 * GROUPS:
        return dict.fromkeys(names, (math.nan, math.nan))
    window = tokens.types[frequent(tokens.n)]
    starts = sample.rows.starts()
    group = np.repeat(np.arange(len(starts)) % GROUPS, np.diff(np.append(starts, sample.n)))
    parts = []
    for number in range(GROUPS):
        at = np.flatnonzero(group == number)
        parts.append(TokenStatistics.of(prepare_rows(sample.values[at], sample.rows.take(at))))
    tables = [part.table_of(np.isin(part.types, window)) for part in _leave_out(parts)]
    half = float(stats.t.ppf(1 - LEVEL / 2, GROUPS - 1)) * math.sqrt(sample.taken / sample.sequences)
    found = {}
    for name in names:
        value = get(name)(tokens, variant="published")
        without = np.array([get(name)(table) for table in tables])
        error = jackknife(float(without.mean()), without)[1]
        found[name] = (value - half * error, value + half * error)
    return found


def _leave_out(parts: Sequence[TokenStatistics]) -> list[TokenStatistics]:
    """The sum of all parts but one, for each of them."""
    before, after = [TokenStatistics.empty(parts[0].d)], [TokenStatistics.empty(parts[0].d)]
    for part, last in zip(parts[:-1], parts[:0:-1], strict=True):
        before.append(before[-1] + part)
        after.append(after[-1] + last)
    return [one + other for one, other in zip(before, reversed(after), strict=True)]
