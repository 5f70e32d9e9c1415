"""Tests over seeds against scipy's, and how often they cry wolf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.evaluation.significance import correct_p_values
from isotrope.finetuning.seeds import compare_seeds, compute_spread


@pytest.mark.parametrize("n", [2, 5, 9])
def test_the_paired_t_test_and_the_exact_test_are_scipys(n: int) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.normal(62, 2, n), rng.normal(61, 2, n)
    found, expected = compare_seeds(first.tolist(), second.tolist()), stats.ttest_rel(first, second)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-9)
    exact = stats.permutation_test((first - second,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert found.p_permutation == pytest.approx(exact.pvalue)


def test_many_seeds_are_drawn() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(0.4, 1, 30)
    found = compare_seeds(first.tolist(), [0.0] * 30)
    drawn = stats.permutation_test((first,), np.mean, permutation_type="samples", n_resamples=20_000)
    assert found.p_permutation == pytest.approx(drawn.pvalue, abs=0.01)


def test_five_seeds_never_get_below_a_sixteenth_by_changing_sides() -> None:
    found = compare_seeds([9.0, 9.1, 9.2, 9.3, 9.4], [1.0, 1.2, 1.1, 1.4, 1.0])
    assert found.p_permutation == 1 / 16
    assert found.p < 1e-5


def test_equal_methods_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(1)
    alarms = [
        compare_seeds((seed + rng.normal(0, 1, 5)).tolist(), (seed + rng.normal(0, 1, 5)).tolist()).p < 0.05
        for seed in rng.normal(60, 3, (1000, 5))
    ]
    assert 0.03 < np.mean(alarms) < 0.07


def test_spread() -> None:
    values = [61.0, 60.5, 64.0, 62.5]
    found = compute_spread(values)
    assert found.deviation == pytest.approx(np.std(values, ddof=1))
    expected = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert math.isnan(compute_spread([61.0]).deviation)


def test_no_spread_no_test() -> None:
    same = compare_seeds([60.0, 61.0], [60.0, 61.0])
    assert (same.value, same.p, same.reason) == (0.0, 1.0, None)
    shifted = compare_seeds([61.0, 62.0], [60.0, 61.0])
    assert math.isnan(shifted.p)
    assert shifted.reason is not None
    assert "no spread" in shifted.reason
    one = compare_seeds([61.0], [60.0])
    assert (one.value, math.isnan(one.p)) == (1.0, True)


def test_correction_leaves_the_undefined_out() -> None:
    found = correct_p_values([compare_seeds([1.0, 2.0, 3.5], [0.0, 0.5, 1.0]), compare_seeds([1.0], [0.0])])
    assert found[0].corrected == pytest.approx(found[0].p)
    assert not found[1].significant
