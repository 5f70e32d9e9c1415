"""The generalized Pareto tail against distributions whose tails are known, and against scipy's fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import Undefined
from isotrope.search.pareto_tail import fit_pareto, fit_tail

#: Distributions, and the shape ξ of their tails.
KNOWN = {
    "normal": (stats.norm(), 0.0),
    "uniform": (stats.uniform(), -1.0),
    "beta": (stats.beta(5, 3), -1 / 3),
    "student": (stats.t(3), 1 / 3),
    "pareto": (stats.pareto(2), 0.5),
}


@pytest.mark.parametrize(("shape", "scale"), [(-0.4, 0.1), (0.0, 2.0), (0.3, 5.0), (1.0, 1.0)])
def test_the_fit_is_that_of_scipy(shape: float, scale: float) -> None:
    drawn = stats.genpareto.rvs(shape, scale=scale, size=500, random_state=1)
    ours = fit_pareto(drawn)
    theirs = stats.genpareto.fit(drawn, shape, floc=0.0, scale=scale)
    likelihoods = [stats.genpareto.logpdf(drawn, c, scale=s).sum() for c, s in (ours, theirs[::2])]
    assert likelihoods[0] >= likelihoods[1] - 1e-3
    assert ours == pytest.approx(theirs[::2], abs=0.02 * (1 + scale))


def test_uniform_exceedances_have_the_shape_of_a_uniform_distribution() -> None:
    drawn = np.random.default_rng(0).uniform(0, 3, 2000)
    assert fit_pareto(drawn) == pytest.approx((-1.0, 3.0), abs=0.05)


@pytest.mark.parametrize("name", KNOWN)
def test_scores_beyond_the_sample_lie_in_the_interval(name: str) -> None:
    """20,000 scores, a rate that one score in 20,000 has and a tenth of it: the truth is inside in 9 of 10 at least."""
    known, _ = KNOWN[name]
    rng, inside = np.random.default_rng(3), 0
    for seed in range(10):
        scores = known.rvs(20_000, random_state=rng)
        tail = fit_tail(scores, len(scores), len(scores), seed)
        rates = (5e-5, tail.smallest_rate)
        inside += all(low <= known.isf(rate) <= high for rate in rates for low, high in [tail.compute_interval(rate)])
        assert tail.smallest_rate == pytest.approx(5e-6)
    assert inside >= 9


def test_the_interval_is_of_use() -> None:
    scores = np.random.default_rng(0).normal(size=20_000)
    low, high = fit_tail(scores, len(scores), len(scores)).compute_interval(1e-4)
    assert 3.2 < low < stats.norm.isf(1e-4) < high < 4.6


def test_fewer_independent_scores_make_the_interval_wider() -> None:
    scores = np.random.default_rng(0).normal(size=20_000)
    widths = []
    for effective in (20_000, 5_000):
        low, high = fit_tail(scores, len(scores), effective).compute_interval(1e-4)
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]


def test_rates_and_scores_belong_together() -> None:
    scores = np.random.default_rng(0).normal(size=20_000)
    tail = fit_tail(scores, len(scores), len(scores))
    for rate in (1e-3, 1e-5):
        assert tail.compute_rate(tail.compute_score(rate)) == pytest.approx(rate)


@pytest.mark.parametrize("kind", ["two values", "two tails", "few"])
def test_scores_without_a_tail_are_refused(kind: str) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=20_000)
    if kind == "two values":
        scores = rng.integers(0, 2, 20_000).astype(float)
    elif kind == "two tails":
        scores[:60] = 50.0 + rng.normal(size=60) * 1e-3
    effective = 500.0 if kind == "few" else 20_000.0
    with pytest.raises(Undefined, match="tell no tail"):
        fit_tail(scores, len(scores), effective)
