"""Thresholds for a wanted precision or recall: what they promise holds for the population; curves by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from isotrope.errors import InputError
from isotrope.search.labelled_scores import LabelledScores, compute_auc
from isotrope.statistics.pair_cosines import PairCosines


def draw(rng: np.random.Generator, n: int, shift: float = 2.0) -> tuple[PairCosines, np.ndarray]:
    """Independent pairs, half of them matches, whose scores are normal."""
    labels = rng.random(n) < 0.5
    scores = (rng.normal(size=n) + shift * labels) / 20
    ends = np.arange(2 * n, dtype=np.int32).reshape(2, n)
    return PairCosines(scores, ends[0], ends[1], 2 * n), labels


def true_precision(cosine: float, shift: float = 2.0) -> float:
    accepted = norm.sf(20 * cosine - shift), norm.sf(20 * cosine)
    return float(accepted[0] / sum(accepted))


@pytest.mark.parametrize(("goal", "wanted"), [("precision", 0.9), ("recall", 0.8)])
def test_what_is_certified_is_true(goal: str, wanted: float) -> None:
    """In 95 of 100 draws the true precision or recall is at least the wanted one; and it is not far above."""
    rng, true = np.random.default_rng(0), []
    for seed in range(40):
        found = LabelledScores.of(*draw(rng, 3000), seed).find_threshold(goal, wanted)  # type: ignore[arg-type]
        true.append(true_precision(found.value) if goal == "precision" else float(norm.sf(20 * found.value - 2.0)))
        assert found.low < found.reached < found.high
        assert found.reached >= wanted
    assert sum(value >= wanted for value in true) >= 37
    assert np.median(true) < wanted + 0.06


def test_the_stated_interval_holds_on_new_pairs() -> None:
    rng, kept = np.random.default_rng(1), 0
    for seed in range(40):
        found = LabelledScores.of(*draw(rng, 1000), seed).find_threshold("precision", 0.85)
        new, labels = draw(rng, 500)
        kept += found.low <= labels[new.cosines >= found.value].mean() <= found.high
    assert kept >= 36


def test_pairs_with_common_rows_are_worth_fewer() -> None:
    """Ten pairs of a row that all turn out alike are worth as much as one."""
    scores, labels = draw(np.random.default_rng(0), 600)
    others = np.arange(600, 6600, dtype=np.int32)
    ten = PairCosines(np.repeat(scores.cosines, 10), np.repeat(scores.first, 10), others, 6600)
    once = LabelledScores.of(scores, labels).find_threshold("precision", 0.8)
    often = LabelledScores.of(ten, np.repeat(labels, 10)).find_threshold("precision", 0.8)
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.3)


def test_what_cannot_be_certified_is_refused() -> None:
    pairs = LabelledScores.of(*draw(np.random.default_rng(0), 400, shift=0.3))
    with pytest.raises(
        InputError, match=r"no threshold has a precision of 0.99 for certain: .* support 0\.\d+ at most"
    ):
        pairs.find_threshold("precision", 0.99)
    with pytest.raises(InputError, match="not between 0 and 1"):
        pairs.find_threshold("recall", 1.5)


def test_labels_of_one_kind_are_refused() -> None:
    scores, labels = draw(np.random.default_rng(0), 100)
    with pytest.raises(InputError, match="0 of 100 labelled pairs match; give at least 10"):
        LabelledScores.of(scores, np.zeros_like(labels))
    with pytest.raises(InputError, match="do not match"):
        LabelledScores.of(scores, np.ones_like(labels))


def test_curves_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels = draw(np.random.default_rng(0), 500)
    found = LabelledScores.of(scores, labels).to_dict()
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, scores.cosines))
    assert compute_auc(scores.cosines, labels) == pytest.approx(found["auc"])
    curve = {name: np.array(values) for name, values in found["curve"].items()}
    rates, recalls, thresholds = metrics.roc_curve(labels, scores.cosines, drop_intermediate=False)
    by_threshold = {t: (f, r) for f, r, t in zip(rates, recalls, thresholds, strict=True)}
    for cosine, rate, recall in zip(curve["cosines"], curve["false_accept"], curve["recall"], strict=True):
        assert (rate, recall) == pytest.approx(by_threshold[cosine])
    accepted = [labels[scores.cosines >= cosine].mean() for cosine in curve["cosines"]]
    assert curve["precision"] == pytest.approx(accepted)
