"""Isotonic probabilities against scikit-learn, and the calibration error by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.search.match_probability import (
    compute_calibration_error,
    compute_crossed_error,
    fit_isotonic,
    fit_probability,
)

sklearn_isotonic = pytest.importorskip("sklearn.isotonic")


@pytest.mark.parametrize("seed", range(5))
def test_the_isotonic_fit_is_that_of_scikit_learn(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=60).round(1)
    assert fit_isotonic(values) == pytest.approx(sklearn_isotonic.isotonic_regression(values))


@pytest.mark.parametrize("digits", [1, 8])
def test_probabilities_are_those_of_scikit_learn(digits: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400).round(digits)
    labels = rng.random(400) < 1 / (1 + np.exp(-scores))
    theirs = sklearn_isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    asked = np.linspace(-4, 4, 200)
    assert np.interp(asked, *fit_probability(scores, labels)) == pytest.approx(theirs.predict(asked))


def test_the_calibration_error_by_its_definition() -> None:
    rng = np.random.default_rng(0)
    probabilities, labels = rng.random(500), rng.random(500) < 0.3
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (probabilities >= low) & (probabilities < low + 1 / 15)
        if inside.any():
            expected += inside.mean() * abs(probabilities[inside].mean() - labels[inside].mean())
    assert compute_calibration_error(probabilities, labels) == pytest.approx(expected)


def test_isotonic_regression_calibrates_pairs_that_it_has_not_seen() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.7, 1.0, 4000)  # all cosines are high, as in a narrow cone
    labels = rng.random(4000) < (scores - 0.7) / 0.3
    part = rng.random(4000) < 0.5
    assert compute_calibration_error(scores, labels) > 0.3
    assert compute_crossed_error(scores, labels, part) < 0.05
