"""GLUE's scores against scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.finetuning.tasks import average_scores, compute_score

metrics = pytest.importorskip("sklearn.metrics")

REFERENCE = {
    "accuracy": metrics.accuracy_score,
    "f1": lambda labels, predicted: metrics.f1_score(labels, predicted, zero_division=0.0),
    "matthews": metrics.matthews_corrcoef,
}


@pytest.mark.parametrize("metric", REFERENCE)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("right", [0.0, 0.3, 0.9, 1.0])
def test_scores_of_classes(metric: str, share: float, right: float) -> None:
    rng = np.random.default_rng([int(10 * share), int(10 * right)])
    labels = (rng.random(97) < share).astype(float)
    predicted = np.where(rng.random(97) < right, labels, 1 - labels)
    assert compute_score(metric, predicted, labels.tolist()) == pytest.approx(
        REFERENCE[metric](labels, predicted), abs=1e-12
    )


@pytest.mark.parametrize("predicted", [0.0, 1.0])
@pytest.mark.parametrize("metric", REFERENCE)
def test_always_the_same_answer(metric: str, predicted: float) -> None:
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    expected = REFERENCE[metric](labels, np.full(5, predicted))
    assert compute_score(metric, np.full(5, predicted), labels.tolist()) == pytest.approx(expected, abs=1e-12)


def test_accuracy_of_three_classes() -> None:
    labels, predicted = np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 2.0, 2.0, 1.0])
    assert compute_score("accuracy", predicted, labels.tolist()) == metrics.accuracy_score(labels, predicted)


def test_correlations_of_numbers_with_ties() -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 6, 120).astype(float)
    predicted = (gold + rng.normal(size=120)).round(1)
    assert compute_score("pearson", predicted, gold.tolist()) == pytest.approx(stats.pearsonr(predicted, gold)[0])
    assert compute_score("spearman", predicted, gold.tolist()) == pytest.approx(stats.spearmanr(predicted, gold)[0])


def test_an_undefined_correlation_is_never_the_best() -> None:
    constant = compute_score("pearson", np.ones(4), [0.0, 1.0, 2.0, 3.0])
    assert math.isnan(constant)
    assert average_scores([constant, 0.9]) == -math.inf
    assert average_scores([0.5, 0.9]) == pytest.approx(0.7)
