"""Intervals of shares of rows, which do not end at 0 where no row was seen."""

from __future__ import annotations

from scipy import stats


def widen_for_share(ends: tuple[float, float], share: float, n: int) -> tuple[float, float]:
    """An interval that is at least as wide as that of a share of n independent rows (Wilson 1927); NaN stays NaN.

    Rows that are not there leave no trace when groups are left out in turn, but one in n/4 may still be of that kind.

    >>> [round(end, 4) for end in widen_for_share((0.0, 0.0), 0.0, 1000)]
    [0.0, 0.0038]
    """
    low, high = map(float, stats.binomtest(round(share * n), n).proportion_ci(method="wilson"))
    return ends[0] + min(0.0, low - ends[0]), ends[1] + max(0.0, high - ends[1])
