"""GLUE's scores against scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.finetuning.task_metrics import score, task_score

metrics = pytest.importorskip("sklearn.metrics")

REFERENCE = {
    "accuracy": metrics.accuracy_score,
    "f1": lambda labels, said: metrics.f1_score(labels, said, zero_division=0.0),
    "matthews": metrics.matthews_corrcoef,
}


@pytest.mark.parametrize("metric", REFERENCE)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("right", [0.0, 0.3, 0.9, 1.0])
def test_scores_of_classes(metric: str, share: float, right: float) -> None:
    rng = np.random.default_rng([int(10 * share), int(10 * right)])
    labels = (rng.random(97) < share).astype(float)
    said = np.where(rng.random(97) < right, labels, 1 - labels)
    assert score(metric, said, labels.tolist()) == pytest.approx(REFERENCE[metric](labels, said), abs=1e-12)


@pytest.mark.parametrize("said", [0.0, 1.0])
@pytest.mark.parametrize("metric", REFERENCE)
def test_always_the_same_answer(metric: str, said: float) -> None:
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    expected = REFERENCE[metric](labels, np.full(5, said))
    assert score(metric, np.full(5, said), labels.tolist()) == pytest.approx(expected, abs=1e-12)


def test_accuracy_of_three_classes() -> None:
    labels, said = np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 2.0, 2.0, 1.0])
    assert score("accuracy", said, labels.tolist()) == metrics.accuracy_score(labels, said)


def test_correlations_of_numbers_with_ties() -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 6, 120).astype(float)
    said = (gold + rng.normal(size=120)).round(1)
    assert score("pearson", said, gold.tolist()) == pytest.approx(stats.pearsonr(said, gold)[0])
    assert score("spearman", said, gold.tolist()) == pytest.approx(stats.spearmanr(said, gold)[0])


def test_an_undefined_correlation_is_never_the_best() -> None:
    constant = score("pearson", np.ones(4), [0.0, 1.0, 2.0, 3.0])
    assert math.isnan(constant)
    assert task_score([constant, 0.9]) == -math.inf
    assert task_score([0.5, 0.9]) == pytest.approx(0.7)
