"""P-values: of a permutation test, and corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A little slack, so that rounding does not separate values that are equal.
_SLACK = 1e-6


def count_p_value(value: float, permuted: NDArray[np.floating[Any]]) -> float:
    """Count the p-value of a permutation test: the share of values, the observed one among them, that are as large.

    Args:
        value: The observed statistic; large values speak against the null hypothesis.
        permuted: The same statistic after each permutation, (r,).

    >>> count_p_value(3.0, np.array([1.0, 2.0, 3.0]))
    0.5
    """
    close = value - _SLACK * float(np.abs(permuted).max(initial=0.0))
    return float((1 + np.count_nonzero(permuted >= close)) / (1 + len(permuted)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979); NaN stays NaN and does not count.

    >>> holm([0.01, 0.04, float("nan"), 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given)[: np.count_nonzero(~np.isnan(given))]
    found = np.full(len(given), np.nan)
    found[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)), 1.0)
    return [float(p) for p in found]
