"""The tail of scores beyond the largest ones that were seen often: a generalized Pareto distribution.

Exceedances over a high score follow nearly this distribution, whatever the scores are (Pickands 1975,
doi:10.1214/aos/1176343003). It is fitted by maximum likelihood. Intervals are from the profile likelihood, with as many
exceedances as there are independent ones (Davison and Smith 1990).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, genpareto

from isotrope.errors import Undefined
from isotrope.search.rate_interval import CONFIDENCE, SAMPLES, widen_to_new_sample

Vector = NDArray[np.float64]

#: Numbers of exceedances that are tried, the most first, and the largest share of all scores that they may be.
_COUNTS, _LARGEST_SHARE = (500, 250, 100), 0.05

#: Independent exceedances that a fit needs.
_FEWEST = 30

#: How far a rate may lie below one in as many pairs as are independent: one decade.
BEYOND = 10.0

#: Chance of a fit as bad as this below which the distribution is refused, and simulated fits that tell it.
_POOREST_FIT, _SIMULATED = 0.015, 99

#: Grids of the search for the largest likelihood, each five times as fine as the one before.
_REFINEMENTS = 3

#: Shape from which on a tail has no mean, and says nothing that can be relied on.
_HEAVIEST = 1.0

#: Shapes of the profile likelihood. Below −1 the likelihood has no maximum.
_SHAPES = np.linspace(-1.0, 2.0, 91)


class ParetoFit(NamedTuple):
    """Shape ξ and scale σ of a generalized Pareto distribution."""

    shape: float
    scale: float


@dataclass(frozen=True, eq=False)
class ParetoTail:
    """The tail of scores over a start.

    Attributes:
        start: Score from which on the distribution is taken.
        share: Share of all scores above it.
        shape: ξ: below 0 the scores have an end, 0 is an exponential tail, above 0 a heavy one.
        scale: σ.
        exceedances: How far scores are above the start, (k,).
        effective: How many independent exceedances they are worth.
        fit_p: Chance of a fit as poor as this one if the distribution is right.
    """

    start: float
    share: float
    shape: float
    scale: float
    exceedances: Vector
    effective: float
    fit_p: float

    @property
    def smallest_rate(self) -> float:
        """The smallest rate that the tail supports: a tenth of one in as many scores as are independent."""
        return self.share / (BEYOND * self.effective)

    def compute_score(self, rate: float) -> float:
        """The score that this share of all scores exceeds."""
        return self.start + float(genpareto.isf(min(1.0, rate / self.share), self.shape, scale=self.scale))

    def compute_rate(self, score: float) -> float:
        """The share of all scores that exceed a score."""
        return self.share * float(genpareto.sf(score - self.start, self.shape, scale=self.scale))

    def compute_interval(self, rate: float) -> tuple[float, float]:
        """Where the score of a rate lies in 95 of 100 other samples of this size; the end may be infinite."""
        shares = widen_to_new_sample(self.share, self.effective / self.share)
        return self._find_end(rate / shares.low, -1), self._find_end(rate / shares.high, 1)

    def _find_end(self, part: float, side: int) -> float:
        """The end of the profile-likelihood interval of the score that a part of the exceedances exceeds."""
        best = float(genpareto.isf(min(1.0, part), self.shape, scale=self.scale))
        weight = 2.0 * self.effective / len(self.exceedances) / SAMPLES
        top = _compute_profile(self.exceedances, best, part)
        most = max(top, _compute_likelihood(self.exceedances, self.shape, self.scale))
        limit = most - float(chi2.ppf(CONFIDENCE, 1)) / weight

        def compute_margin(away: float) -> float:
            return _compute_profile(self.exceedances, best + side * away, part) - limit

        far = best * 1e-3 + 1e-300
        while compute_margin(far) > 0.0:
            far *= 2.0
            if side < 0 and far >= best:
                return self.start
            if far > 1e6 * best:
                return math.inf
        away = float(brentq(compute_margin, 0.0, far, rtol=1e-6)) if compute_margin(0.0) > 0.0 else 0.0
        return self.start + best + side * away


def fit_tail(scores: Vector, total: int, effective: float, seed: int = 0) -> ParetoTail:
    """Fit the tail to the largest scores: to as many as the distribution describes, 500 at most.

    Args:
        scores: the largest of all scores, at least some hundreds, (k,).
        total: how many scores there are in all.
        effective: how many independent scores they are worth.
        seed: of the simulated fits that tell whether the distribution is right.

    Raises:
        Undefined: if no number of exceedances is described by the distribution.

    Examples:
        >>> scores = np.random.default_rng(0).exponential(size=20_000)
        >>> tail = fit_tail(scores, 20_000, 20_000)
        >>> round(tail.compute_score(1e-5) / -math.log(1e-5), 1)
        1.0
    """
    ordered = np.sort(scores)[::-1]
    reason = "there are too few of them"
    for count in _COUNTS:
        worth = count * effective / total
        if count >= len(ordered) or count > _LARGEST_SHARE * total or worth < _FEWEST:
            continue
        start = float(ordered[count])
        exceedances = ordered[:count] - start
        if exceedances[-1] <= 0.0 or len(np.unique(exceedances)) < 0.9 * count:
            reason = "many of them are the same"
            continue
        fit = fit_pareto(exceedances)
        chance = _compute_fit_chance(exceedances, fit, worth, seed)
        if chance >= _POOREST_FIT and fit.shape < _HEAVIEST:
            return ParetoTail(start, count / total, fit.shape, fit.scale, exceedances, worth, chance)
        reason = "they do not follow one tail, as when some rows are copies of others"
    raise Undefined(f"the largest scores tell no tail: {reason}")


def fit_pareto(exceedances: Vector) -> ParetoFit:
    """Fit a generalized Pareto distribution by maximum likelihood over shapes from −1 on (Grimshaw 1993).

    >>> fit = fit_pareto(genpareto.rvs(0.2, scale=3.0, size=20_000, random_state=0))
    >>> round(fit.shape, 1), round(fit.scale, 1)
    (0.2, 2.9)
    """
    shapes, scales = _fit_samples(exceedances[None])
    return ParetoFit(float(shapes[0]), float(scales[0]))


def _fit_samples(samples: NDArray[np.float64]) -> tuple[Vector, Vector]:
    """Shapes and scales of many samples, (m, k) -> (m,), (m,).

    θ = ξ/σ is above −1 over the largest value, and for each θ the best shape is the mean of log(1 + θx). So the
    likelihood is searched over θ alone: over a grid of log(1 + θ · largest), then over ever finer ones.
    """
    largest = samples.max(axis=1)
    samples = samples / largest[:, None]
    best, step = np.zeros(len(samples)), 0.5
    grid = np.arange(-14.0, 7.01, step)
    for _ in range(_REFINEMENTS):
        places = best + grid[:, None]
        losses, shapes = np.empty(places.shape), np.empty(places.shape)
        for i, place in enumerate(places):
            theta = np.expm1(place)
            shapes[i] = np.log1p(theta[:, None] * samples).mean(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                scale = np.where(np.abs(place) < 1e-9, samples.mean(axis=1), shapes[i] / theta)
                losses[i] = np.where(shapes[i] < -1.0, np.inf, np.log(scale) + shapes[i])
        at = np.argmin(losses, axis=0), np.arange(len(samples))
        best, step = places[at], step / 5.0
        grid = np.arange(-5.0, 5.1) * step
    theta, shape = np.expm1(best), shapes[at]
    scale = np.where(np.abs(best) < 1e-9, samples.mean(axis=1), shape / np.where(theta == 0.0, 1.0, theta))
    bounded = losses[at] > -1.0  # shape −1, the uniform distribution up to the largest value, is more likely
    return np.where(bounded, -1.0, shape), np.where(bounded, 1.0, scale) * largest


def _compute_likelihood(exceedances: Vector, shape: float, scale: float) -> float:
    with np.errstate(divide="ignore"):
        return float(genpareto.logpdf(exceedances, shape, scale=scale).sum())


def _compute_profile(exceedances: Vector, score: float, part: float) -> float:
    """The largest log-likelihood over all shapes where a part of the exceedances exceeds a score."""
    if score <= 0.0 or part >= 1.0:
        return -math.inf
    shapes = np.where(np.abs(_SHAPES) < 1e-6, 1e-6, _SHAPES)
    growth = np.expm1(-shapes * math.log(part))
    theta = growth / score  # ξ/σ
    logs = _sum_logs(exceedances, theta)
    with np.errstate(invalid="ignore"):
        found = -len(exceedances) * np.log(shapes / theta) - (1.0 + 1.0 / shapes) * logs
    return float(np.nanmax(np.where(np.isfinite(logs), found, -math.inf)))


def _sum_logs(exceedances: Vector, theta: Vector) -> Vector:
    """Σ log(1 + θx) for each θ; −∞ where a value lies beyond the end of the distribution."""
    inside = 1.0 + theta * exceedances.max() > 0.0
    sums = np.full(len(theta), -math.inf)
    sums[inside] = np.log1p(np.outer(theta[inside], exceedances)).sum(axis=1)
    return sums


def _compute_fit_chance(exceedances: Vector, fit: ParetoFit, effective: float, seed: int) -> float:
    """The chance of a larger distance, from fits to simulated exceedances."""
    size = max(_FEWEST, min(len(exceedances), round(effective)))
    distance = _compute_distance(exceedances, fit) * size / len(exceedances)
    drawn = genpareto.rvs(fit.shape, scale=fit.scale, size=(_SIMULATED, size), random_state=np.random.default_rng(seed))
    fits = map(ParetoFit, *_fit_samples(drawn))
    larger = sum(_compute_distance(sample, each) >= distance for sample, each in zip(drawn, fits, strict=True))
    return (1 + larger) / (1 + _SIMULATED)


def _compute_distance(exceedances: Vector, fit: ParetoFit) -> float:
    """The distance of Anderson and Darling (1952), which weighs the ends of a distribution most."""
    n = len(exceedances)
    ordered, odd = np.sort(exceedances), 2.0 * np.arange(1, n + 1) - 1.0
    with np.errstate(divide="ignore"):
        below = genpareto.logcdf(ordered, fit.shape, scale=fit.scale)
        above = genpareto.logsf(ordered, fit.shape, scale=fit.scale)[::-1]
    return -n - float((odd * np.maximum(below + above, -1e3)).sum()) / n
