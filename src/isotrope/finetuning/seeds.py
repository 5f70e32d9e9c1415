"""Comparison of two methods of training over seeds: each seed gives a pair of scores with the same data and weights.

The p-value and the interval are those of the paired t-test. The exact permutation test (Noreen 1989) is given as well.
n seeds have 2ⁿ permutations, so with five seeds its p-value is never below 1/16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import stats

from isotrope.evaluation.metrics import Vector
from isotrope.evaluation.significance import LEVEL, SWAPS, Difference


class Spread(NamedTuple):
    """Mean over seeds, its standard deviation, and the 95 % interval of the mean (Student's t)."""

    mean: float
    deviation: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class SeedDifference(Difference):
    """Mean difference of two methods over seeds. p: paired t-test. p_permutation: exact permutation test."""

    p_permutation: float = math.nan


def compute_spread(values: Sequence[float]) -> Spread:
    """Compute mean, standard deviation and interval of the scores of seeds.

    >>> found = compute_spread([60.0, 62.0, 64.0])
    >>> found.mean, found.deviation
    (62.0, 2.0)
    """
    given = np.asarray(values, dtype=np.float64)
    n, mean = len(given), float(given.mean())
    if n < 2:
        return Spread(mean, math.nan, math.nan, math.nan, n)
    deviation = float(given.std(ddof=1))
    half = float(stats.t.ppf(1 - LEVEL / 2, n - 1)) * deviation / math.sqrt(n)
    return Spread(mean, deviation, mean - half, mean + half, n)


def compare_seeds(values: Sequence[float], others: Sequence[float]) -> SeedDifference:
    """Compare the scores of two methods for the same seeds, (n,) and (n,).

    >>> found = compare_seeds([61.0, 64.0, 66.0, 67.0, 70.0], [60.0, 62.0, 63.0, 63.0, 65.0])
    >>> found.value, round(found.p, 4), found.p_permutation
    (3.0, 0.0132, 0.0625)
    """
    differences = np.asarray(values, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    found = compute_spread(differences.tolist())
    n, nan = found.n, math.nan
    if not np.isfinite(differences).all():
        return SeedDifference(nan, nan, nan, nan, n, "a score is undefined")
    if n < 2:
        return SeedDifference(found.mean, nan, nan, nan, n, "one seed has no spread; train with several")
    exact = _permutation_p_value(differences)
    if found.deviation <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        if abs(found.mean) <= 1e-12:
            return SeedDifference(0.0, 0.0, 0.0, 1.0, n, p_permutation=exact)
        reason = "the difference is the same for all seeds, so that it has no spread"
        return SeedDifference(found.mean, nan, nan, nan, n, reason, p_permutation=exact)
    p = float(2 * stats.t.sf(abs(found.mean) / (found.deviation / math.sqrt(n)), n - 1))
    return SeedDifference(found.mean, found.low, found.high, p, n, p_permutation=exact)


def _permutation_p_value(differences: Vector) -> float:
    """p-value of the mean difference where the two scores of each seed are swapped at random."""
    n = len(differences)
    if 2**n <= SWAPS:
        sums, drawn = np.array(list(product((1.0, -1.0), repeat=n))) @ differences, 0
    else:
        signs = np.random.default_rng(0).integers(0, 2, (SWAPS, n)) * 2.0 - 1.0
        sums, drawn = signs @ differences, 1  # the observed scores count as one of the permutations
    beyond = np.count_nonzero(np.abs(sums) >= abs(differences.sum()) * (1 - 1e-9) - 1e-12)
    return float((beyond + drawn) / (len(sums) + drawn))
