"""Drift and mean cosine over layers of several models: the test that decides, claims by class, and the chart."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from isotrope.studies.anisotropy.drift import (
    _draw_p_values,
    correlate_changes,
    correlate_layers,
    find_shown_p,
    join_drift,
    judge_drift,
)


def make_row(model: str, kind: str, rho: float, p: float, *, family: str = "other", trained: bool = True) -> Any:
    row = {"model": model, "class": kind, "family": family, "trained": trained, "layers": 13}
    row |= dict.fromkeys(("spearman", "pearson", "changes"), rho)
    row |= dict.fromkeys(("spearman_p", "spearman_p_asymptotic", "pearson_p", "pearson_p_asymptotic"), p)
    return pd.DataFrame([row | {"changes_p": p, "deciding_p": p}])


def test_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    drift, cosine = rng.normal(size=(2, 9))
    found = correlate_layers(drift.tolist(), cosine.tolist())
    assert found["spearman"] == pytest.approx(stats.spearmanr(drift, cosine).statistic)
    assert found["spearman_p_asymptotic"] == pytest.approx(stats.spearmanr(drift, cosine).pvalue)
    assert found["pearson"] == pytest.approx(stats.pearsonr(drift, cosine).statistic)
    assert found["pearson_p_asymptotic"] == pytest.approx(stats.pearsonr(drift, cosine).pvalue)


def test_the_deciding_p_is_the_larger_of_layers_and_their_changes() -> None:
    rng = np.random.default_rng(1)
    drift, cosine = rng.normal(size=(2, 6))

    def permute(x: np.ndarray, y: np.ndarray) -> float:
        ours = abs(stats.spearmanr(x, y).statistic) - 1e-9
        orders = (list(order) for order in permutations(range(len(x))))
        every = [abs(np.corrcoef(stats.rankdata(x), stats.rankdata(y)[order])[0, 1]) for order in orders]
        return float(np.mean(np.array(every) >= ours))

    found = correlate_changes(drift.tolist(), cosine.tolist())
    steps = np.diff(drift), np.diff(cosine)
    assert found["changes"] == pytest.approx(stats.spearmanr(*steps).statistic)
    assert found["changes_p"] == pytest.approx(permute(*steps))
    assert found["deciding_p"] == pytest.approx(max(permute(*steps), permute(drift, cosine)))


def test_random_walks_are_not_significant_too_often() -> None:
    """Of independent random walks of 13 layers the paper's test rejects about 3 in 10, the deciding one 1 in 50."""
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(80, 2, 13)).cumsum(axis=2)
    usual = np.mean([stats.spearmanr(*walk).pvalue < 0.05 for walk in walks])
    ours = np.mean([correlate_changes(*walk.tolist())["deciding_p"] < 0.05 for walk in walks])
    assert usual > 0.2
    assert ours < 0.05


def test_drift_that_explains_is_found() -> None:
    rng = np.random.default_rng(0)
    walk = rng.normal(size=13).cumsum()
    assert correlate_changes(walk.tolist(), np.exp(walk).tolist())["deciding_p"] < 0.001


def test_too_few_layers_decide_nothing() -> None:
    assert np.isnan(correlate_changes([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])["deciding_p"])


@pytest.mark.parametrize(
    ("kind", "family", "rho", "p", "outcome"),
    [
        ("subword", "bert", 0.9, 0.001, "agrees"),
        ("subword", "bert", -0.9, 0.001, "contradicts"),
        ("subword", "bert", 0.9, 0.2, "undecided"),
        ("encoder-decoder", "t5", 0.9, 0.001, "agrees"),
        ("character", "canine", 0.9, 0.001, "agrees"),
        ("vision transformer", "vit", 0.9, 0.001, "contradicts"),
        ("vision transformer", "vit", 0.1, 0.8, "undecided"),
        ("speech", "whisper", 0.9, 0.001, "contradicts"),
        ("speech", "hubert", 0.1, 0.9, "undecided"),
        ("convolution", "resnet", 0.9, 0.001, "agrees"),
        ("convolution", "resnet", 0.9, 0.06, "undecided"),
    ],
)
def test_which_classes_drift_explains(kind: str, family: str, rho: float, p: float, outcome: str) -> None:
    (claim,) = judge_drift(join_drift([make_row("m", kind, rho, p, family=family)]))
    assert claim.outcome == outcome
    assert "corrected p" in claim.evidence


def test_models_that_the_paper_leaves_out_have_no_claim() -> None:
    left_out = [
        make_row("gpt2", "subword", 0.9, 0.001, family="gpt2"),
        make_row("canine-c", "character", 0.9, 0.001, family="canine"),
        make_row("manta-base", "character", 0.9, 0.001, family="manta"),
        make_row("wav2vec2", "speech", 0.9, 0.001, family="wav2vec2"),
        make_row("fresh", "subword", 0.9, 0.001, trained=False),
    ]
    assert judge_drift(join_drift(left_out)) == []


def test_p_values_are_corrected_for_the_number_of_models() -> None:
    frame = join_drift([make_row(str(i), "subword", 0.9, p) for i, p in enumerate((0.03, 0.001))])
    assert frame["corrected_p"].tolist() == [0.03, 0.002]
    frame = join_drift([make_row(str(i), "subword", 0.9, 0.03) for i in range(2)])
    assert [claim.outcome for claim in judge_drift(frame)] == ["undecided"]


def test_the_chart_shows_the_table_by_class_with_the_line() -> None:
    rows = [
        make_row("resnet", "convolution", 0.5, 0.04),
        make_row("bert", "subword", 0.9, 0.001),
        make_row("vit", "vision transformer", 0.2, 0.6),
    ]
    rows[1]["spearman_p_asymptotic"] = 0.0  # as scipy gives it for perfect ranks
    frame = join_drift(rows)
    assert frame["model"].tolist() == ["bert", "vit", "resnet"]
    assert find_shown_p(frame, "spearman").tolist() == [0.001, 0.6, 0.04]
    figure = Figure()
    _draw_p_values(frame, figure)
    for axes, kind in zip(figure.axes, ("spearman", "pearson"), strict=True):
        assert axes.get_yscale() == "log"
        usual, permuted, border = axes.lines[:3]
        assert usual.get_ydata().tolist() == find_shown_p(frame, kind).tolist()
        assert permuted.get_ydata().tolist() == frame[f"{kind}_p"].tolist()
        assert list(border.get_ydata()) == [0.05, 0.05]
        assert border.get_color() == "#CC0000"
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == frame["model"].tolist()
    assert {note.get_text() for note in figure.axes[0].texts} == {"subword", "vision transformer", "convolution"}
