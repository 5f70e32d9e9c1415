"""The rule for verdicts: its cases, and its intervals against other computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.studies.verdict import (
    depth_interval,
    judge_equal,
    judge_exact,
    judge_interval,
    judge_test,
    seeds_interval,
)

NAN = math.nan


@pytest.mark.parametrize(
    ("low", "high", "border", "outcome"),
    [
        (0.1, 0.5, 0.0, "agrees"),
        (-0.5, -0.1, 0.0, "contradicts"),
        (-0.1, 0.5, 0.0, "undecided"),
        (0.0, 0.5, 0.0, "undecided"),  # an interval that touches the border holds it
        (0.1, 0.5, 0.2, "undecided"),
        (0.3, 0.5, 0.2, "agrees"),
        (NAN, NAN, 0.0, "undecided"),  # one seed, or a clock
    ],
)
def test_an_interval_decides(low: float, high: float, border: float, outcome: str) -> None:
    assert judge_interval(low, high, border=border) == outcome


@pytest.mark.parametrize(
    ("low", "high", "tolerance", "outcome"),
    [
        (0.65, 0.75, 0.1, "agrees"),
        (0.55, 0.75, 0.1, "undecided"),
        (0.85, 0.95, 0.1, "contradicts"),
        (0.1, 0.2, 0.1, "contradicts"),
        (0.65, 0.75, 0.0, "undecided"),  # holding the printed number does not show that it is the number
        (NAN, NAN, 0.1, "undecided"),
    ],
)
def test_an_interval_is_compared_with_a_printed_number(low: float, high: float, tolerance: float, outcome: str) -> None:
    assert judge_equal(low, high, published=0.7, tolerance=tolerance) == outcome


@pytest.mark.parametrize(
    ("effect", "p", "outcome"),
    [
        (0.8, 0.049, "agrees"),
        (-0.8, 0.049, "contradicts"),
        (-0.94, 0.065, "undecided"),
        (0.8, 0.05, "undecided"),
        (0.0, 0.001, "undecided"),
        (1.0, NAN, "undecided"),
    ],
)
def test_a_corrected_p_value_decides(effect: float, p: float, outcome: str) -> None:
    assert judge_test(effect, p) == outcome


def test_an_identity_is_judged_as_it_is() -> None:
    assert judge_exact(holds=True) == "agrees"
    assert judge_exact(holds=False) == "contradicts"


def test_the_interval_over_seeds_is_that_of_a_t_test() -> None:
    values = np.random.default_rng(0).normal(0.3, 1.0, size=7)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert seeds_interval(values) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert all(map(math.isnan, seeds_interval([0.586])))


def test_values_far_apart_keep_their_order() -> None:
    values = [0.1, 0.2, 0.4, 0.3]
    rho = float(stats.spearmanr(range(4), values).statistic)
    tight = [v - 1e-6 for v in values], [v + 1e-6 for v in values]
    assert depth_interval(values, *tight) == pytest.approx((rho, rho), abs=1e-12)


def test_the_depth_interval_contains_the_correlation_where_layers_are_close() -> None:
    values = np.linspace(0.5, 0.51, 30)  # rising at every step, by far less than the intervals
    low, high = depth_interval(values, values - 0.02, values + 0.02)
    assert low < 0.9
    assert high == pytest.approx(1.0)


def test_the_depth_interval_is_that_of_a_parametric_bootstrap() -> None:
    rng = np.random.default_rng(3)
    values, half = np.array([0.0, 0.3, 0.2, 0.6, 0.5, 0.9]), 0.5
    draws = [stats.spearmanr(range(6), rng.normal(values, half / 1.959964)).statistic for _ in range(4_000)]
    expected = np.quantile(draws, [0.025, 0.975])
    assert depth_interval(values, values - half, values + half) == pytest.approx(tuple(expected), abs=0.06)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, NAN, 2.0], [1.0, 1.0, 1.0]])
def test_nothing_is_decided_without_layers_that_vary(values: list[float]) -> None:
    assert all(map(math.isnan, depth_interval(values, values, values)))
