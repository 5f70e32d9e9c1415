"""The background against numpy's quantiles, on unseen halves, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.search.background import Background
from isotrope.statistics.pair_cosines import PairCosines


def draw_topics(rng: np.random.Generator, n: int, d: int = 24) -> np.ndarray:
    """Unit rows of some topics around a common mean, as texts have."""
    topics = rng.normal(size=(40, d))
    rows = topics[rng.integers(0, 40, n)] + rng.normal(size=(n, d)) + 0.7
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


FOUND = PairCosines.of(draw_topics(np.random.default_rng(0), 800))
BACKGROUND = Background.of(FOUND)


@pytest.mark.parametrize("rate", [0.3, 0.02, 1e-3, 4e-4])
def test_a_threshold_is_the_quantile_of_the_pairs(rate: float) -> None:
    found = BACKGROUND.find_threshold(rate)
    assert found.method == "quantile"
    assert (FOUND.cosines >= found).mean() == pytest.approx(rate, rel=0.03)
    assert found == pytest.approx(np.quantile(FOUND.cosines, 1 - rate), abs=2e-3)
    assert found.low < found < found.high


def test_shares_are_those_of_the_pairs() -> None:
    cosines = np.linspace(-0.9, 0.9, 40)
    expected = [(FOUND.cosines >= cosine).mean() for cosine in cosines]
    assert BACKGROUND.compute_share(cosines) == pytest.approx(expected, abs=2e-3)
    assert BACKGROUND.compute_share([-1.0, 1.0]).tolist()[0] == 1.0
    assert (np.diff(BACKGROUND.compute_share(np.linspace(-1, 1, 300))) <= 1e-12).all()


@pytest.mark.parametrize("rate", [0.05, 1e-3])
def test_intervals_hold_on_unseen_rows(rate: float) -> None:
    """Thresholds of 40 samples, each tried on another sample of the same size: 95 of 100 are promised."""
    rng, kept = np.random.default_rng(1), 0
    for seed in range(40):
        rows = draw_topics(rng, 1200)
        found = Background.of(PairCosines.of(rows[:600]), seed).find_threshold(rate)
        kept += found.low <= np.quantile(PairCosines.of(rows[600:]).cosines, 1 - rate) <= found.high
    assert kept >= 35


def test_independent_pairs_would_promise_too_much() -> None:
    """The pairs of these rows are worth far fewer independent ones, which is what makes the interval hold."""
    assert BACKGROUND.compute_effective(0.05) < 0.3 * BACKGROUND.pairs


def test_a_rate_beyond_the_pairs_takes_the_tail() -> None:
    rows = np.random.default_rng(0).normal(size=(700, 50))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    background = Background.of(PairCosines.of(rows))
    found = background.find_threshold(1e-5)
    # The cosine c of isotropic rows: (c + 1)/2 has a Beta distribution with (d − 1)/2 twice.
    from scipy.stats import beta

    truth = 2 * beta.isf(1e-5, 24.5, 24.5) - 1
    assert found.method == "tail"
    assert found.low <= truth <= found.high
    assert found == pytest.approx(truth, abs=0.03)


def test_a_rate_that_the_pairs_cannot_support_is_refused() -> None:
    with pytest.raises(InputError, match=r"1e-12 is below what .* the smallest rate is .*: ask for it, or give more"):
        BACKGROUND.find_threshold(1e-12)
    smallest = BACKGROUND.smallest_rate
    assert BACKGROUND.find_threshold(smallest * 1.05) < 1.0
    for rate in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="not between 0 and 1"):
            BACKGROUND.find_threshold(rate)


def test_copies_are_named_where_they_are_the_reason() -> None:
    rows = draw_topics(np.random.default_rng(0), 100)
    background = Background.of(PairCosines.of(np.repeat(rows, 5, axis=0)))
    with pytest.raises(InputError, match="have the cosine 1, as copies have"):
        background.find_threshold(1e-3)
