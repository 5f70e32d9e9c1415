"""Two systems on the same items: their difference, its 95 % interval, and whether it may be chance.

The interval is a paired bootstrap: items are drawn with replacement, the same ones for all systems (Efron & Tibshirani
1993). The p-value is a paired permutation test: where two systems do not differ, it does not matter which of them a
score came from, so scores change sides by a coin's toss for each item (Noreen 1989). What several p-values say together
is corrected after Holm (1979).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import stats

from isotrope.errors import InputError
from isotrope.evaluation.metrics import Matrix, Metric, Vector

#: Resamples for an interval, and swaps for a p-value: the smallest possible one is 1 in 10,000.
RESAMPLES, SWAPS = 2_000, 9_999

#: The chance of a false alarm that "significant" allows.
LEVEL = 0.05

#: Numbers that are held at a time.
_AT_ONCE = 1_000_000

#: Where more resamples than this share have no value (all of their scores are the same), there is no interval.
_UNDEFINED = 0.05


@dataclass(frozen=True)
class Score:
    """What a system scores, its 95 % interval, from how many items; NaN with a reason where undefined."""

    value: float
    low: float
    high: float
    n: int
    reason: str | None = None
    resampled: Vector = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


@dataclass(frozen=True)
class Difference:
    """A system's score less that of the one it is compared with, its 95 % interval and p-value.

    corrected: the p-value for all comparisons together, NaN until `corrected` was asked. significant: whether that is
    below 0.05.
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
        return self.corrected < LEVEL


class Compared(NamedTuple):
    """Scores of systems by name, and the differences of all others to the first."""

    scores: dict[str, Score]
    differences: dict[str, Difference]


def compare(
    systems: Mapping[str, Metric],
    *,
    seed: int = 0,
    items: str = "",
    resamples: int = RESAMPLES,
    swaps: int = SWAPS,
) -> Compared:
    """The scores of systems on the same items, and the differences of all others to the first.

    items: a name of the set of items: different sets are resampled differently, so that they can be averaged.

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
    by_resample, by_swap = np.random.default_rng([seed, zlib.crc32(items.encode())]).spawn(2)
    defined = {name: metric for name, metric in systems.items() if metric.reason is None}
    resampled: dict[str, list[Vector]] = {name: [] for name in defined}
    for counts in _counts(by_resample, resamples, n) if defined else ():
        for name, metric in defined.items():
            resampled[name].append(metric.resampled(counts))
    swapped: dict[str, list[Vector]] = {name: [] for name in others if {name, base} <= defined.keys()}
    for signs in _signs(by_swap, swaps, n) if swapped else ():
        for name, parts in swapped.items():
            parts.append(systems[name].swapped(systems[base], signs))
    scores = {
        name: _score(metric.value, n, np.concatenate(resampled[name]))
        if name in defined
        else Score(math.nan, math.nan, math.nan, n, metric.reason)
        for name, metric in systems.items()
    }
    differences = {name: _difference(scores[name], scores[base], swapped.get(name, [])) for name in others}
    return Compared(scores, differences)


def average(sets: Sequence[Compared]) -> Compared:
    """The plain mean over sets of items, compared with each other as the sets were.

    Items are drawn, and change sides, within their sets. Where one set has no value, the mean has none.
    """
    if not sets:
        raise InputError("got no set to average, expected at least one.")
    scores, differences = {}, {}
    for name in sets[0].scores:
        parts = [found.scores[name] for found in sets]
        value, n, reason = _means(parts)
        scores[name] = (
            Score(math.nan, math.nan, math.nan, n, reason)
            if reason
            else _score(value, n, np.mean([p.resampled for p in parts], axis=0))
        )
    base = next(iter(scores.values()))
    for name in sets[0].differences:
        swapped = [found.differences[name].swapped for found in sets]
        defined = scores[name].reason is None and base.reason is None
        differences[name] = _difference(scores[name], base, [np.mean(swapped, axis=0)] if defined else [])
    return Compared(scores, differences)


def _means(parts: Sequence[Score]) -> tuple[float, int, str | None]:
    reason = next((part.reason for part in parts if part.reason), None)
    return float(np.mean([part.value for part in parts])), sum(part.n for part in parts), reason


def corrected(differences: Iterable[Difference]) -> list[Difference]:
    """The same differences with their p-values corrected for their number; undefined ones do not count."""
    found = list(differences)
    return [replace(d, corrected=p) for d, p in zip(found, holm([d.p for d in found]), strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979); NaN stays NaN and does not count.

    >>> holm([0.01, 0.04, math.nan, 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given)[: np.count_nonzero(~np.isnan(given))]
    found = np.full(len(given), np.nan)
    found[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)), 1.0)
    return [float(p) for p in found]


def _counts(rng: np.random.Generator, resamples: int, n: int) -> Iterator[Matrix]:
    """How often each of n items is in each resample, (n, r), some resamples at a time."""
    for r in _parts(resamples, n):
        drawn = rng.integers(0, n, (n, r)) * r + np.arange(r)
        yield np.bincount(drawn.ravel(), minlength=n * r).reshape(n, r).astype(np.float64)


def _signs(rng: np.random.Generator, swaps: int, n: int) -> Iterator[Matrix]:
    """Tosses of a coin, +1 or −1, (n, r), some at a time."""
    for r in _parts(swaps, n):
        yield rng.integers(0, 2, (n, r), dtype=np.int8).astype(np.float64) * 2.0 - 1.0


def _parts(total: int, n: int) -> Iterator[int]:
    most = max(1, _AT_ONCE // max(n, 1))
    for start in range(0, total, most):
        yield min(most, total - start)


def _score(value: float, n: int, resampled: Vector) -> Score:
    return Score(value, *_interval(resampled, n), n, None, resampled)


def _difference(score: Score, base: Score, swapped: Sequence[Vector]) -> Difference:
    reason = score.reason or base.reason
    if reason:
        return Difference(math.nan, math.nan, math.nan, math.nan, score.n, reason)
    value, resampled, change = score.value - base.value, score.resampled - base.resampled, np.concatenate(swapped)
    # A little slack, so that equal systems are not told apart by rounding; what is undefined counts against them.
    beyond = int(np.count_nonzero(~(np.abs(change) < abs(value) * (1 - 1e-9) - 1e-12)))
    p = (1 + beyond) / (1 + len(change))
    return Difference(value, *_interval(resampled, score.n), p, score.n, None, resampled=resampled, swapped=change)


def _interval(resampled: Vector, n: int) -> tuple[float, float]:
    """The 95 % interval of a bootstrap: percentiles, moved out as Student's t asks for few items (Hesterberg 2015)."""
    defined = resampled[~np.isnan(resampled)]
    if n < 2 or len(defined) < (1 - _UNDEFINED) * len(resampled):
        return math.nan, math.nan
    tail = float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(1 - LEVEL / 2, n - 1)))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)
