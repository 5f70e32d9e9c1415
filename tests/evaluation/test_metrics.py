"""Scores, resampled scores and swapped scores, against scipy on the resampled and swapped data themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr

from isotrope.errors import InputError
from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Mean

SCIPY = {"spearman": spearmanr, "pearson": pearsonr}


def data(n: int = 60, seed: int = 0, *, tied: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of two systems and gold scores."""
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    a, b = gold + rng.normal(size=n), 5 + 3 * gold + 2 * rng.normal(size=n)
    return (np.round(a, 1), b, np.round(gold)) if tied else (a, b, gold)


@pytest.mark.parametrize("kind", CORRELATIONS)
@pytest.mark.parametrize("tied", [True, False])
def test_value_is_scipys(kind: str, tied: bool) -> None:
    a, _, gold = data(tied=tied)
    assert Correlation(a, gold, kind).value == pytest.approx(SCIPY[kind](a, gold).statistic, abs=1e-12)


@pytest.mark.parametrize("kind", CORRELATIONS)
@pytest.mark.parametrize("tied", [True, False])
def test_resamples_are_ranked_anew(kind: str, tied: bool) -> None:
    a, _, gold = data(tied=tied)
    drawn = np.random.default_rng(1).integers(0, len(a), (7, len(a)))
    counts = np.stack([np.bincount(d, minlength=len(a)) for d in drawn], axis=1).astype(float)
    expected = [SCIPY[kind](a[d], gold[d]).statistic for d in drawn]
    np.testing.assert_allclose(Correlation(a, gold, kind).resample(counts), expected, atol=1e-12)


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_swapped_standard_scores(kind: str) -> None:
    a, b, gold = data()
    signs = np.random.default_rng(2).choice([-1.0, 1.0], (len(a), 9))
    x, y, g = (rankdata(v) for v in (a, b, gold)) if kind == "spearman" else (a, b, gold)
    x, y = ((v - v.mean()) / v.std() for v in (x, y))
    n = len(a)
    expected = []
    for s in signs.T:
        here, there = np.where(s > 0, x, y), np.where(s > 0, y, x)
        expected.append((pearsonr(here, g).statistic - pearsonr(there, g).statistic) * math.sqrt(n / (n - 1)))
    found = Correlation(a, gold, kind).swap(Correlation(b, gold, kind), signs)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(0, 99))
def test_means(values: list[float], seed: int) -> None:
    x = np.array(values)
    rng = np.random.default_rng(seed)
    y, drawn = rng.normal(size=len(x)), rng.integers(0, len(x), len(x))
    signs = rng.choice([-1.0, 1.0], len(x))
    tolerance = 1e-9 * (1 + np.abs(x).max())
    assert Mean(x).value == pytest.approx(x.mean(), abs=tolerance)
    counts = np.bincount(drawn, minlength=len(x)).astype(float)[:, None]
    assert Mean(x).resample(counts)[0] == pytest.approx(x[drawn].mean(), abs=tolerance)
    swapped = np.where(signs > 0, x, y).mean() - np.where(signs > 0, y, x).mean()
    assert Mean(x).swap(Mean(y), signs[:, None])[0] == pytest.approx(swapped, abs=tolerance)


def test_scale_and_order_of_scores_do_not_matter() -> None:
    a, _, gold = data()
    assert Correlation(np.exp(a), gold, "spearman").value == pytest.approx(Correlation(a, gold, "spearman").value)
    assert Correlation(-7 * a + 3, gold, "pearson").value == pytest.approx(-Correlation(a, gold, "pearson").value)


@pytest.mark.parametrize("kind", CORRELATIONS)
@pytest.mark.parametrize(
    ("scores", "gold", "reason"),
    [
        ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], "all 3 scores are the same"),
        ([1, 2, 3], [4, 4, 4], "all 3 gold scores are the same"),
        ([1], [2], "at least two pairs, got 1"),
        ([], [], "at least two pairs, got 0"),
        ([1, math.nan, 3], [1, 2, 3], "1 of 3 pairs have no score"),
    ],
)
def test_undefined_correlations_say_why(kind: str, scores: list[float], gold: list[float], reason: str) -> None:
    found = Correlation(scores, gold, kind)
    assert math.isnan(found.value)
    assert found.reason is not None
    assert reason in found.reason


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_a_resample_without_spread_has_no_correlation(kind: str) -> None:
    """Where all its pairs are the same, or its scores, or its gold scores; 0.1 and 0.7 leave rounding behind."""
    counts = np.array([[4, 2, 0, 1], [0, 2, 0, 1], [0, 0, 2, 1], [0, 0, 2, 1]], dtype=float)
    found = Correlation([0.1, 0.1, 0.7, 0.3], [1.1, 3.7, 2.9, 2.9], kind).resample(counts)
    assert np.isnan(found).tolist() == [True, True, True, False]


def test_bad_input() -> None:
    with pytest.raises(InputError, match="spearman or pearson"):
        Correlation([1, 2], [1, 2], "kendall")
    with pytest.raises(InputError, match="2 scores and 3 gold scores"):
        Correlation([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="shape"):
        Correlation([[1, 2]], [1, 2])
    with pytest.raises(InputError, match="1 of 2 gold scores are NaN"):
        Correlation([1, 2], [1, math.nan])
    with pytest.raises(InputError, match="1 of 2 values are NaN or inf"):
        _ = Mean([1, math.inf]).value
    with pytest.raises(InputError, match="same pairs"):
        Correlation([1, 2], [1, 2]).swap(Correlation([1, 2], [2, 1]), np.ones((2, 1)))
