"""The background of a search: cosines of random pairs, which mostly have nothing to do with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, Undefined
from isotrope.search.pareto_tail import ParetoTail, fit_tail
from isotrope.search.rate_interval import widen_to_new_sample
from isotrope.statistics.pair_cosines import PairCosines

Vector = NDArray[np.float64]

#: Pairs above a threshold from which on it is read off the pairs themselves.
FEWEST_ABOVE = 100

#: Points of the curve for each factor of ten of the share, and rates at which the effective number of pairs is taken.
_POINTS_PER_DECADE = 50
_EFFECTIVE_RATES = (0.5, 0.2, 0.05, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)

#: What a background holds as arrays.
ARRAYS = ("cosines", "shares", "rates", "effective", "largest")

#: The largest scores that the tail may be fitted to.
_LARGEST = 501


class CosineThreshold(float):
    """A cosine cut-off for a rate of false accepts: a number that knows its interval.

    Attributes:
        low: Lower end of the interval that holds the threshold of this rate in 95 of 100 other samples of as many rows.
        high: Upper end.
        false_accept: Share of random pairs at or above the threshold.
        method: "quantile" of the pairs, or "tail" where a generalized Pareto distribution was needed.
    """

    low: float
    high: float
    false_accept: float
    method: str

    def __new__(cls, value: float, low: float, high: float, false_accept: float, method: str) -> CosineThreshold:
        found = super().__new__(cls, value)
        found.low, found.high, found.false_accept, found.method = low, high, false_accept, method
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"value": float(self), **vars(self)}


@dataclass(frozen=True, eq=False)
class Background:
    """Share of random pairs at or above each cosine.

    Attributes:
        pairs: Number of pairs.
        rows: Number of rows that they are of.
        seed: Of the simulated fits that tell whether the tail is right.
        cosines: Points of the curve, from the largest cosine down, (k,).
        shares: Share of pairs at or above each of them, (k,).
        rates: Rates at which the effective number of pairs is known, from the largest down, (r,).
        effective: How many independent pairs the pairs are worth at these rates, (r,).
        largest: The largest cosines, the first the largest, (m,).
    """

    pairs: int
    rows: int
    seed: int
    cosines: Vector
    shares: Vector
    rates: Vector
    effective: Vector
    largest: Vector

    @classmethod
    def of(cls, found: PairCosines, seed: int = 0) -> Background:
        """The background of pairs.

        >>> rows = np.random.default_rng(0).normal(size=(200, 8))
        >>> background = Background.of(PairCosines.of(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
        >>> background.pairs, round(float(background.compute_share(0.0)), 2)
        (19900, 0.49)
        """
        ordered = np.sort(found.cosines)
        cosines, shares = _make_curve(ordered)
        rates = np.array([rate for rate in _EFFECTIVE_RATES if rate * len(found) >= FEWEST_ABOVE] or [0.5])
        starts = ordered[np.maximum(0, len(found) - np.round(rates * len(found)).astype(np.int64))]
        effective = np.array([found.compute_effective(start) for start in starts])
        largest = ordered[-_LARGEST:][::-1].copy()
        return cls(len(found), found.rows, seed, cosines, shares, rates, effective, largest)

    @cached_property
    def _tail(self) -> tuple[ParetoTail | None, str | None]:
        """The tail beyond the pairs, or why there is none; it is fitted when it is first needed."""
        try:
            # Pairs in the far tail share rows most: what is known of the smallest rate holds beyond it.
            return fit_tail(self.largest, self.pairs, float(self.effective[-1]), self.seed), None
        except Undefined as error:
            return None, str(error)

    @property
    def tail(self) -> ParetoTail | None:
        """The tail beyond the pairs; None where they tell none."""
        return self._tail[0]

    @property
    def smallest_rate(self) -> float:
        """The smallest rate that a threshold can be given for."""
        if self.tail is None:
            return self._smallest_seen
        return min(self._smallest_seen, max(self.tail.smallest_rate, self.tail.compute_rate(1.0) * 1.01))

    @property
    def highest_seen(self) -> float:
        """The highest cosine that enough of the pairs reach to read a share off them."""
        return self._find_cosine(self._smallest_seen)

    @property
    def _smallest_seen(self) -> float:
        """The smallest rate whose threshold is read off the pairs themselves."""
        return max(FEWEST_ABOVE / self.pairs, float(self.shares[0]))

    def compute_effective(self, rate: float) -> float:
        """How many independent pairs the pairs are worth at a rate."""
        logs = np.log(self.rates[::-1]), np.log(self.effective[::-1])
        return float(np.exp(np.interp(math.log(rate), *logs)))

    def compute_share(self, cosines: Any) -> Vector:
        """The share of random pairs at or above each cosine."""
        asked = np.asarray(cosines, dtype=np.float64)
        logs = _to_logits(self.shares)
        found = _from_logits(np.interp(asked, self.cosines[::-1], logs[::-1]))
        found = np.where(asked > self.cosines[0], 0.0, np.where(asked <= self.cosines[-1], 1.0, found))
        if not (asked > self.highest_seen).any() or self.tail is None:
            return np.asarray(found)
        beyond = np.vectorize(self.tail.compute_rate, otypes=[float])(asked)
        return np.asarray(np.where(beyond < self._smallest_seen, beyond, found))

    def find_threshold(self, false_accept: float) -> CosineThreshold:
        """The cosine that a share of random pairs reaches."""
        if not 0.0 < false_accept < 1.0:
            raise InputError(f"the false-accept rate {false_accept:g} is not between 0 and 1; give a share of pairs.")
        if false_accept >= self._smallest_seen:
            ends = widen_to_new_sample(false_accept, self.compute_effective(false_accept))
            value, low, high = (self._find_cosine(rate) for rate in (false_accept, ends.high, ends.low))
            return CosineThreshold(value, low, high, false_accept, "quantile")
        if self.tail is None or false_accept < self.smallest_rate:
            raise InputError(self._describe_refusal(false_accept))
        low, high = (min(end, 1.0) for end in self.tail.compute_interval(false_accept))
        return CosineThreshold(min(self.tail.compute_score(false_accept), 1.0), low, high, false_accept, "tail")

    def _find_cosine(self, rate: float) -> float:
        """The cosine of a rate on the curve; 1, which nothing exceeds, for rates below the first point."""
        if rate < self.shares[0]:
            return 1.0
        return float(np.interp(_to_logits(np.array([rate]))[0], _to_logits(self.shares), self.cosines))

    def _describe_refusal(self, asked: float) -> str:
        worth = round(float(self.effective[-1]))
        reason = f", and {self._tail[1]}" if self._tail[1] else ""
        if self.shares[0] * self.pairs >= FEWEST_ABOVE:
            reason = f": {self.shares[0]:.2g} of them have the cosine {self.cosines[0]:.4g}, as copies have"
        return (
            f"the false-accept rate {asked:g} is below what {self.pairs:,} random pairs of {self.rows:,} rows (worth "
            f"{worth:,} independent ones) can support{reason}; the smallest rate is {_round_up(self.smallest_rate)}: "
            "ask for it, or give more rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        return {"pairs": self.pairs, "rows": self.rows, "seed": self.seed, **arrays}


def _make_curve(ordered: Vector) -> tuple[Vector, Vector]:
    """Cosines, the largest first, and the share of pairs from each on; dense at both ends."""
    n = len(ordered)
    half = np.geomspace(1.0, max(1.0, n / 2), max(2, round(_POINTS_PER_DECADE * math.log10(max(n, 10)))))
    ranks = np.unique(np.concatenate([half, n + 1.0 - half]).round().astype(np.int64).clip(1, n))
    cosines = np.unique(ordered[n - ranks])[::-1]
    shares = (n - np.searchsorted(ordered, cosines, side="left")) / n
    return cosines, shares


def _to_logits(shares: Vector) -> Vector:
    inside = shares.clip(1e-300, 1.0 - 1e-12)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _from_logits(logits: Vector) -> Vector:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def _round_up(rate: float) -> str:
    """A rate with two digits, never below itself.

    >>> _round_up(1.234e-6)
    '1.3e-06'
    """
    step = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return f"{math.ceil(rate / step - 1e-9) * step:.2g}"
