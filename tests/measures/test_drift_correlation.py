"""The correlation over layers against scipy, and its exact p."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures import MEASURES
from isotrope.measures.drift_correlation import LayerReadings


def read(name: str, x: np.ndarray, y: np.ndarray) -> float:
    return MEASURES.get(f"drift_correlation_{name}").value(LayerReadings(x, y))


@pytest.mark.parametrize("layers", [3, 7, 13, 25])
@pytest.mark.parametrize("ties", [False, True])
def test_coefficients_and_asymptotic_p_are_those_of_scipy(layers: int, ties: bool) -> None:
    rng = np.random.default_rng(layers)
    x, y = rng.standard_normal((2, layers)) + np.arange(layers) / layers
    if ties:
        x, y = np.round(x), np.round(y * 2)
    for kind, test in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        coefficient, p = test(x, y)
        assert read(kind, x, y) == pytest.approx(coefficient, abs=1e-12)
        assert read(f"{kind}_p_asymptotic", x, y) == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_ranks_of_seven_layers(sign: int) -> None:
    x = np.array([0.5, 1.0, 1.2, 3.0, 8.0, 8.1, 20.0])
    y = sign * np.sqrt(x)
    assert read("spearman", x, y) == pytest.approx(sign)
    assert read("spearman_p", x, y) == pytest.approx(2 / factorial(7))
    assert read("spearman_p", x, y) == pytest.approx(4e-4, rel=0.01)
    assert read("spearman_p_asymptotic", x, y) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_few_layers_try_every_order(kind: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 5))
    test = stats.spearmanr if kind == "spearman" else stats.pearsonr
    observed = abs(test(x, y)[0])
    orders = [abs(test(x, np.array(order))[0]) >= observed - 1e-9 for order in permutations(y)]
    assert read(f"{kind}_p", x, y) == pytest.approx(np.mean(orders))


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_many_layers_draw_orders(kind: str) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 30))
    assert read(f"{kind}_p", x, y) == pytest.approx(read(f"{kind}_p_asymptotic", x, y), abs=0.02)
    assert read(f"{kind}_p", x, y) == read(f"{kind}_p", x, y)
    assert read(f"{kind}_p", x, x) == pytest.approx(1 / 20_001)


def test_layers_without_a_value_are_left_out() -> None:
    x, y = np.array([1.0, np.nan, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, np.nan, 4.0, 3.0])
    assert read("pearson", x, y) == pytest.approx(stats.pearsonr([1, 3, 5], [2, 4, 3])[0])


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.arange(2.0), np.arange(2.0), "three layers"),
        (np.ones(5), np.arange(5.0), "same value"),
        (np.arange(5.0), np.ones(5) + 1e-15 * np.arange(5), "same value"),
    ],
)
def test_reasons(x: np.ndarray, y: np.ndarray, reason: str) -> None:
    for m in MEASURES:
        if m.needs == "layers":
            with pytest.raises(Undefined, match=reason):
                m.value(LayerReadings(x, y))
