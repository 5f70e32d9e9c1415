"""Comparison of systems on the same items: differences with 95 % intervals and p-values.

The interval is a paired bootstrap: items are sampled with replacement, the same ones for all systems (Efron &
Tibshirani 1993). The p-value is a paired permutation test: under the null hypothesis a score may come from either
system, so the scores of each item are swapped at random (Noreen 1989). Several p-values are corrected by Holm's method
(1979).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import stats

from isotrope.compute.p_values import holm
from isotrope.errors import InputError
from isotrope.evaluation.metrics import Matrix, Metric, Vector

#: Resamples for an interval, and swaps for a p-value: the smallest possible one is 1 in 10,000.
RESAMPLES, SWAPS = 2_000, 9_999

#: The chance of a false alarm that "significant" allows.
LEVEL = 0.05

#: Numbers in memory at a time.
_AT_ONCE = 1_000_000

#: Where more resamples than this share have no value (all of their scores are the same), there is no interval.
_UNDEFINED = 0.05


@dataclass(frozen=True)
class ResampledScore:
    """Score of a system on n items with its 95 % interval; NaN with a reason where undefined."""

    value: float
    low: float
    high: float
    n: int
    reason: str | None = None
    resampled: Vector = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


@dataclass(frozen=True)
class Difference:
    """Score of a system minus the score of its baseline, with the 95 % interval and p-value.

    corrected: the p-value after correction for the number of comparisons, NaN before `correct_p_values`. resampled,
    swapped: the values of resamples and swaps, so that differences of several sets can be averaged.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    reason: str | None = None
    corrected: float = math.nan
    resampled: Vector = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    swapped: Vector = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below 0.05."""
        return self.corrected < LEVEL


class PairedComparison(NamedTuple):
    """Scores of systems by name, and the differences of all others to the first, the baseline."""

    scores: dict[str, ResampledScore]
    differences: dict[str, Difference]


AnyDifference = TypeVar("AnyDifference", bound=Difference)


def compare(
    systems: Mapping[str, Metric],
    *,
    seed: int = 0,
    items: str = "",
    resamples: int = RESAMPLES,
    swaps: int = SWAPS,
) -> PairedComparison:
    """Score systems on the same items, and compare all others with the first.

    Args:
        systems: metrics by the name of the system, the baseline first.
        seed: seed of the resamples and swaps.
        items: name of the set of items. Different sets are resampled independently, so that they can be averaged.
        resamples: number of bootstrap resamples.
        swaps: number of permutations.

    Returns:
        Scores of all systems and the differences of all others to the baseline.

    Examples:
        >>> from isotrope.evaluation.metrics import Mean
        >>> ndcg = np.random.default_rng(0).random(200)
        >>> found = compare({"raw": Mean(ndcg), "repaired": Mean(ndcg + 0.1)})
        >>> round(found.differences["repaired"].value, 3), found.differences["repaired"].p
        (0.1, 0.0001)
    """
    if len({metric.n for metric in systems.values()}) != 1:
        sizes = ", ".join(f"{name} {metric.n:,}" for name, metric in systems.items())
        raise InputError(f"systems can be compared on the same items only, got items: {sizes or 'no system'}.")
    base, *others = systems
    n = systems[base].n
    resample_rng, swap_rng = np.random.default_rng([seed, zlib.crc32(items.encode())]).spawn(2)
    defined = {name: metric for name, metric in systems.items() if metric.reason is None}
    resampled: dict[str, list[Vector]] = {name: [] for name in defined}
    for counts in _draw_counts(resample_rng, resamples, n) if defined else ():
        for name, metric in defined.items():
            resampled[name].append(metric.resample(counts))
    swapped: dict[str, list[Vector]] = {name: [] for name in others if {name, base} <= defined.keys()}
    for signs in _draw_signs(swap_rng, swaps, n) if swapped else ():
        for name, parts in swapped.items():
            parts.append(systems[name].swap(systems[base], signs))
    scores = {
        name: _make_score(metric.value, n, np.concatenate(resampled[name]))
        if name in defined
        else ResampledScore(math.nan, math.nan, math.nan, n, metric.reason)
        for name, metric in systems.items()
    }
    differences = {name: _make_difference(scores[name], scores[base], swapped.get(name, [])) for name in others}
    return PairedComparison(scores, differences)


def average(sets: Sequence[PairedComparison]) -> PairedComparison:
    """Average comparisons over sets of items, each set with the same weight.

    Items are resampled and swapped within their sets. The mean is undefined where the score of one set is.
    """
    if not sets:
        raise InputError("got no set to average, expected at least one.")
    scores, differences = {}, {}
    for name in sets[0].scores:
        parts = [found.scores[name] for found in sets]
        n = sum(part.n for part in parts)
        reason = next((part.reason for part in parts if part.reason), None)
        if reason:
            scores[name] = ResampledScore(math.nan, math.nan, math.nan, n, reason)
        else:
            value = float(np.mean([part.value for part in parts]))
            scores[name] = _make_score(value, n, np.mean([part.resampled for part in parts], axis=0))
    base = next(iter(scores.values()))
    for name in sets[0].differences:
        swapped = [found.differences[name].swapped for found in sets]
        defined = scores[name].reason is None and base.reason is None
        differences[name] = _make_difference(scores[name], base, [np.mean(swapped, axis=0)] if defined else [])
    return PairedComparison(scores, differences)


def correct_p_values(differences: Iterable[AnyDifference]) -> list[AnyDifference]:
    """Correct the p-values of differences for their number by Holm's method; undefined ones do not count."""
    found = list(differences)
    return [replace(d, corrected=p) for d, p in zip(found, holm([d.p for d in found]), strict=True)]


def _draw_counts(rng: np.random.Generator, resamples: int, n: int) -> Iterator[Matrix]:
    """Draw how often each of n items is in each resample, (n, r), some resamples at a time."""
    for r in _split_draws(resamples, n):
        cells = rng.integers(0, n, (n, r)) * r + np.arange(r)
        yield np.bincount(cells.ravel(), minlength=n * r).reshape(n, r).astype(np.float64)


def _draw_signs(rng: np.random.Generator, swaps: int, n: int) -> Iterator[Matrix]:
    """Draw random signs, +1 or −1, (n, r), some columns at a time."""
    for r in _split_draws(swaps, n):
        yield rng.integers(0, 2, (n, r), dtype=np.int8).astype(np.float64) * 2.0 - 1.0


def _split_draws(total: int, n: int) -> Iterator[int]:
    """Numbers of draws of n items that fit into memory together, which sum to the total."""
    most = max(1, _AT_ONCE // max(n, 1))
    for start in range(0, total, most):
        yield min(most, total - start)


def _make_score(value: float, n: int, resampled: Vector) -> ResampledScore:
    return ResampledScore(value, *_compute_interval(resampled, n), n, None, resampled)


def _make_difference(score: ResampledScore, base: ResampledScore, swapped: Sequence[Vector]) -> Difference:
    reason = score.reason or base.reason
    if reason:
        return Difference(math.nan, math.nan, math.nan, math.nan, score.n, reason)
    value, resampled, change = score.value - base.value, score.resampled - base.resampled, np.concatenate(swapped)
    # A little slack, so that rounding does not separate equal systems; undefined swaps count as extreme.
    beyond = int(np.count_nonzero(~(np.abs(change) < abs(value) * (1 - 1e-9) - 1e-12)))
    p = (1 + beyond) / (1 + len(change))
    return Difference(
        value, *_compute_interval(resampled, score.n), p, score.n, None, resampled=resampled, swapped=change
    )


def _compute_interval(resampled: Vector, n: int) -> tuple[float, float]:
    """Compute the 95 % interval of a bootstrap: percentiles, widened by Student's t for few items (Hesterberg 2015)."""
    defined = resampled[~np.isnan(resampled)]
    if n < 2 or len(defined) < (1 - _UNDEFINED) * len(resampled):
        return math.nan, math.nan
    tail = float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(1 - LEVEL / 2, n - 1)))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)
