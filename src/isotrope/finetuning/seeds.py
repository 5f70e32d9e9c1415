"""Two ways of training compared over seeds: each gives a pair of scores, which share data order and first weights.

The p-value and the interval are those of the paired t-test. The exact test by changing sides (Noreen 1989) stands
beside it, with a caution: n seeds have 2ⁿ ways of changing sides, so that with five its p is never below 1/16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import stats

from isotrope.evaluation.metrics import Vector
from isotrope.evaluation.significance import LEVEL, SWAPS, holm


@dataclass(frozen=True)
class Spread:
    """The mean over seeds, its standard deviation, and the 95 % interval of the mean (Student's t)."""

    mean: float
    deviation: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class SeedDifference:
    """The mean over seeds of one method's score less another's, with its 95 % interval and p-values.

    p: paired t-test. p_permutation: exact test by changing sides. corrected: p after Holm, NaN until asked for.
    """

    value: float
    low: float
    high: float
    p: float
    p_permutation: float
    n: int
    reason: str | None = None
    corrected: float = math.nan

    @property
    def significant(self) -> bool:
        return self.corrected < LEVEL


def spread(values: Sequence[float]) -> Spread:
    """Mean, deviation and interval of the scores of seeds.

    >>> found = spread([60.0, 62.0, 64.0])
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


def paired(values: Sequence[float], others: Sequence[float]) -> SeedDifference:
    """How far scores lie above others of the same seeds, (n,) and (n,).

    >>> found = paired([61.0, 64.0, 66.0, 67.0, 70.0], [60.0, 62.0, 63.0, 63.0, 65.0])
    >>> found.value, round(found.p, 4), found.p_permutation
    (3.0, 0.0132, 0.0625)
    """
    apart = np.asarray(values, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    found = spread(apart.tolist())
    if not np.isfinite(apart).all():
        return SeedDifference(math.nan, math.nan, math.nan, math.nan, math.nan, found.n, "a score is undefined")
    if found.n < 2:
        reason = "one seed has no spread; train with several"
        return SeedDifference(found.mean, math.nan, math.nan, math.nan, math.nan, found.n, reason)
    by_sides = _by_sides(apart)
    if found.deviation <= 1e-12 * max(1.0, float(np.abs(apart).max())):
        if abs(found.mean) <= 1e-12:
            return SeedDifference(0.0, 0.0, 0.0, 1.0, by_sides, found.n)
        reason = "the difference is the same for all seeds, so that it has no spread"
        return SeedDifference(found.mean, math.nan, math.nan, math.nan, by_sides, found.n, reason)
    p = float(2 * stats.t.sf(abs(found.mean) / (found.deviation / math.sqrt(found.n)), found.n - 1))
    return SeedDifference(found.mean, found.low, found.high, p, by_sides, found.n)


def corrected(differences: Sequence[SeedDifference]) -> list[SeedDifference]:
    """The same differences with their p-values corrected for their number."""
    return [replace(d, corrected=p) for d, p in zip(differences, holm([d.p for d in differences]), strict=True)]


def _by_sides(apart: Vector) -> float:
    """How often a mean difference as large comes about where each seed's two scores change sides by a coin's toss."""
    n = len(apart)
    if 2**n <= SWAPS:
        sums, drawn = np.array(list(product((1.0, -1.0), repeat=n))) @ apart, 0
    else:
        signs = np.random.default_rng(0).integers(0, 2, (SWAPS, n)) * 2.0 - 1.0
        sums, drawn = signs @ apart, 1  # the scores as they are count as one of the ways
    beyond = np.count_nonzero(np.abs(sums) >= abs(apart.sum()) * (1 - 1e-9) - 1e-12)
    return float((beyond + drawn) / (len(sums) + drawn))
