"""Metrics of one system over items: a mean, or a correlation with gold scores, with its bootstrap and permutations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotrope.errors import InputError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Correlations by name.
CORRELATIONS = ("spearman", "pearson")

#: A spread below this share of the numbers is rounding.
_ROUNDING = 1e-12


class Metric(Protocol):
    """Score of a system on n items, with what its bootstrap and permutation test need."""

    @property
    def n(self) -> int:
        """Number of items."""

    @property
    def reason(self) -> str | None:
        """Why the value is undefined, None where it is defined."""

    @property
    def value(self) -> float:
        """Score; NaN where it is undefined."""

    def resample(self, counts: Matrix) -> Vector:
        """Scores of resamples, by how often each item is in each of them, (n, r) -> (r,)."""

    def swap(self, other: Metric, signs: Matrix) -> Vector:
        """Differences to another system's score with items of sign −1 swapped, (n, r) -> (r,)."""


@dataclass(frozen=True, eq=False)
class Mean:
    """Mean of one value for each item, such as nDCG@10 of each query.

    >>> Mean([0.0, 1.0]).value
    0.5
    """

    values: ArrayLike

    @cached_property
    def _values(self) -> Vector:
        return _check_vector(self.values, "values")

    @property
    def n(self) -> int:
        return len(self._values)

    @property
    def reason(self) -> str | None:
        return None if self.n else "there is no item"

    @property
    def value(self) -> float:
        return float(np.mean(self._values)) if self.n else math.nan

    def resample(self, counts: Matrix) -> Vector:
        return np.asarray(self._values @ counts / self.n)

    def swap(self, other: Metric, signs: Matrix) -> Vector:
        if not isinstance(other, Mean) or other.n != self.n:
            raise InputError("two systems can be compared on the same items only; give both a value for each.")
        return np.asarray((self._values - other._values) @ signs / self.n)


@dataclass(frozen=True, eq=False)
class Correlation:
    """Correlation of a system's scores of pairs with gold scores: "spearman" (ties get mid-ranks) or "pearson".

    The scores of two systems have different scales. So standard scores are swapped, for spearman ranks, and both
    correlations are computed again. Swapped ranks are not ranked again: to first order this makes no difference where
    the mean gold rank is linear in the rank. Scores divided by their own deviation vary less than others would, so the
    differences after a swap are multiplied by √(n/(n − 1)).

    >>> round(Correlation([0.1, 0.4, 0.3], [1, 2, 3], "spearman").value, 12)
    0.5
    """

    scores: ArrayLike
    gold: ArrayLike
    kind: str = "spearman"

    def __post_init__(self) -> None:
        if self.kind not in CORRELATIONS:
            raise InputError(f"there is no correlation {self.kind!r}; say {' or '.join(CORRELATIONS)}.")
        if len(self._scores) != len(self._gold):
            raise InputError(
                f"got {len(self._scores):,} scores and {len(self._gold):,} gold scores; give one for each."
            )

    @cached_property
    def _scores(self) -> Vector:
        return _check_vector(self.scores, "scores", nan=True)

    @cached_property
    def _gold(self) -> Vector:
        return _check_vector(self.gold, "gold scores")

    @property
    def n(self) -> int:
        return len(self._gold)

    @property
    def reason(self) -> str | None:
        if self.n < 2:
            return f"a correlation needs at least two pairs, got {self.n}"
        without = int(np.count_nonzero(np.isnan(self._scores)))
        if without:
            return f"{without:,} of {self.n:,} pairs have no score, because one of their rows is zero"
        for what, values in (("gold scores", self._gold), ("scores", self._scores)):
            if np.ptp(values) <= _ROUNDING * np.abs(values).max():
                return f"all {self.n:,} {what} are the same, so that no correlation is defined"
        return None

    @cached_property
    def value(self) -> float:
        if self.reason:
            return math.nan
        return float(np.clip(np.mean(self._standard * self._standard_gold), -1.0, 1.0))

    @cached_property
    def _standard(self) -> Vector:
        return self._standardise(self._scores)

    @cached_property
    def _standard_gold(self) -> Vector:
        return self._standardise(self._gold)

    def _standardise(self, values: Vector) -> Vector:
        """Values, or their ranks, with mean 0 and variance 1."""
        if self.kind == "spearman":
            values = _Ranks(values).of(np.ones((self.n, 1)))[:, 0]
        centred = values - values.mean()
        return np.asarray(centred / math.sqrt(np.mean(centred**2)))

    @cached_property
    def _ranks(self) -> tuple[_Ranks, _Ranks]:
        return _Ranks(self._scores), _Ranks(self._gold)

    def resample(self, counts: Matrix) -> Vector:
        if self.kind == "spearman":
            x, y = (ranks.of(counts) for ranks in self._ranks)
            covariance, *variances = (np.einsum("ir,ir,ir->r", counts, a, b) for a, b in ((x, y), (x, x), (y, y)))
            return _ratio(covariance, *variances)
        x, y = self._standard, self._standard_gold
        mean_x, mean_y, xy, xx, yy = np.stack([x, y, x * y, x * x, y * y]) @ counts / self.n
        return _ratio(xy - mean_x * mean_y, xx - mean_x**2, yy - mean_y**2)

    def swap(self, other: Metric, signs: Matrix) -> Vector:
        if not isinstance(other, Correlation) or not np.array_equal(other._gold, self._gold):
            raise InputError("two systems can be compared on the same pairs only; give both a score for each.")
        middle, away = (self._standard + other._standard) / 2, (self._standard - other._standard) / 2
        gold = self._standard_gold
        mean, cross, product = np.stack([away, middle * away, away * gold]) @ signs / self.n
        square, along = np.mean(middle**2 + away**2), np.mean(middle * gold)
        here, there = (_ratio(along + s * product, square + 2 * s * cross - mean**2) for s in (1.0, -1.0))
        return np.asarray((here - there) * math.sqrt(self.n / (self.n - 1)))


class _Ranks:
    """Mid-ranks of values within resamples, from one sort."""

    def __init__(self, values: Vector) -> None:
        _, self._code = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._code, kind="stable")
        self._first = np.searchsorted(self._code[self._order], np.arange(self._code.max(initial=0) + 1))

    def of(self, counts: Matrix) -> Matrix:
        """Centred mid-ranks of the items, by how often each is in a resample, (n, r) -> (n, r)."""
        each = counts[self._order]
        if len(self._first) < len(each):  # some values are the same
            each = np.add.reduceat(each, self._first, axis=0)
        middle = np.cumsum(each, axis=0)
        middle -= each / 2
        middle -= len(counts) / 2
        return np.asarray(middle[self._code])


def _ratio(covariance: Vector, *variances: Vector) -> Vector:
    """Correlation of covariance and variances; NaN where one side does not vary."""
    defined = np.all([variance > _ROUNDING for variance in variances], axis=0)
    spread = np.sqrt(np.where(defined, np.prod(variances, axis=0), 1.0))
    return np.asarray(np.where(defined, covariance / spread, np.nan))


def _check_vector(values: ArrayLike, what: str, *, nan: bool = False) -> Vector:
    """Check that values are numbers, (n,). nan: whether NaN is allowed."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise InputError(f"got {what} of shape {found.shape}, expected one for each item, (n,).")
    bad = int(np.count_nonzero(np.isinf(found) if nan else ~np.isfinite(found)))
    if bad:
        raise InputError(f"{bad:,} of {len(found):,} {what} are NaN or inf; leave out their items, for all systems.")
    return found
