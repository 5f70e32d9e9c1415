"""Intervals and p-values: against exact tests, and by simulation how often they are wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from isotrope.compute.p_values import holm
from isotrope.errors import InputError
from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Mean
from isotrope.evaluation.significance import Difference, average, compare, correct_p_values

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def alike(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two systems that err alike and independently, and gold scores."""
    gold, common = rng.normal(size=(2, n))
    a, b = (gold + 0.8 * common + 0.6 * rng.normal(size=n) for _ in range(2))
    return a, b, gold


def test_p_value_of_means_is_that_of_all_swaps() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(10), rng.random(10) + 0.2
    changes = [np.mean(signs * (b - a)) for signs in itertools.product((-1, 1), repeat=10)]
    exact = np.mean(np.abs(changes) >= abs(np.mean(b - a)) - 1e-12)
    found = compare({"a": Mean(a), "b": Mean(b)}).differences["b"]
    assert found.value == pytest.approx(np.mean(b - a))
    assert found.p == pytest.approx(exact, abs=0.02)


def test_p_value_is_near_students_and_interval_too() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=300)
    b = a + 0.1 + rng.normal(size=300)
    found = compare({"a": Mean(a), "b": Mean(b)}).differences["b"]
    expected = stats.ttest_rel(b, a)
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)
    interval = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.02)


def test_score_and_interval_are_scipys() -> None:
    a, _, gold = alike(np.random.default_rng(2), 400)
    score = compare({"a": Correlation(a, gold, "pearson")}).scores["a"]
    expected = stats.pearsonr(a, gold)
    interval = expected.confidence_interval()
    assert score.value == pytest.approx(expected.statistic)
    assert (score.low, score.high) == pytest.approx((interval.low, interval.high), abs=0.02)
    assert score.n == 400


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_equal_systems_do_not_differ(kind: str) -> None:
    a, _, gold = alike(np.random.default_rng(3), 50)
    found = compare({"a": Correlation(a, gold, kind), "b": Correlation(3 * a + 1, gold, kind)}).differences["b"]
    assert found.value == pytest.approx(0, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0, 0), abs=1e-12)
    assert found.p == 1.0


def test_seeds_and_names_of_items() -> None:
    a, b, gold = alike(np.random.default_rng(4), 80)
    systems = {"a": Correlation(a, gold), "b": Correlation(b, gold)}
    first, again, other, elsewhere = (
        compare(systems, seed=seed, items=items).differences["b"]
        for seed, items in ((0, ""), (0, ""), (1, ""), (0, "x"))
    )
    assert first == again
    assert len({first.low, other.low, elsewhere.low}) == 3
    assert abs(first.p - other.p) < 0.05


def test_mean_over_sets_resamples_within_them() -> None:
    rng = np.random.default_rng(5)
    sets = []
    parts = []
    for name, n, effect in (("x", 30, 0.3), ("y", 200, 0.1)):
        a = rng.normal(size=n)
        b = a + effect + rng.normal(size=n)
        parts.append((a, b))
        sets.append(compare({"a": Mean(a), "b": Mean(b)}, items=name))
    found = average(sets)
    differences = [b - a for a, b in parts]
    value = np.mean([d.mean() for d in differences])
    error = math.sqrt(sum(d.var(ddof=1) / len(d) for d in differences)) / 2
    change = found.differences["b"]
    assert found.scores["b"].value == pytest.approx(np.mean([b.mean() for _, b in parts]))
    assert change.value == pytest.approx(value)
    assert (change.low, change.high) == pytest.approx((value - 1.96 * error, value + 1.96 * error), abs=0.03)
    assert change.p == pytest.approx(2 * stats.norm.sf(value / error), abs=0.01)
    assert change.n == 230


def test_undefined_scores_have_a_reason_and_no_difference() -> None:
    a, _, gold = alike(np.random.default_rng(6), 30)
    found = compare({"a": Correlation(a, gold), "b": Correlation(np.ones(30), gold)})
    assert found.scores["a"].reason is None
    for undefined in (found.scores["b"], found.differences["b"]):
        assert undefined.reason == "all 30 scores are the same, so that no correlation is defined"
        assert math.isnan(undefined.value)
        assert math.isnan(undefined.low)
    assert math.isnan(found.differences["b"].p)
    over = average([found, compare({"a": Correlation(a, gold), "b": Correlation(a, gold)}, items="x")])
    assert over.scores["b"].reason == over.differences["b"].reason == found.scores["b"].reason
    assert over.scores["a"].reason is None


def test_an_undefined_base_leaves_no_difference() -> None:
    a, _, gold = alike(np.random.default_rng(6), 30)
    found = compare({"a": Correlation(np.ones(30), gold), "b": Correlation(a, gold)})
    assert found.differences["b"].reason == found.scores["a"].reason
    assert found.scores["b"].reason is None


def test_few_items_have_wide_intervals_or_none() -> None:
    assert math.isnan(compare({"a": Mean([0.5])}).scores["a"].low)
    one = compare({"a": Correlation([0.5], [1]), "b": Correlation([0.4], [1])})
    assert math.isnan(one.differences["b"].p)
    two = compare({"a": Correlation([0.5, 0.6], [1, 2]), "b": Correlation([0.4, 0.3], [1, 2])})
    assert two.scores["a"].value == 1.0
    assert math.isnan(two.scores["a"].low)
    assert two.differences["b"].p > 0.4


def test_holm_is_the_textbooks() -> None:
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.7, 0.6]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
    assert np.isnan(holm([math.nan])).all()


def test_significant_is_only_said_after_the_correction() -> None:
    small = Difference(0.1, 0.05, 0.15, 0.02, 100)
    assert not small.significant
    assert [d.significant for d in correct_p_values([small])] == [True]
    assert [d.significant for d in correct_p_values([small] * 3)] == [False] * 3


def test_bad_input() -> None:
    with pytest.raises(InputError, match="got items: a 2, b 3"):
        compare({"a": Mean([1, 2]), "b": Mean([1, 2, 3])})
    with pytest.raises(InputError, match="no system"):
        compare({})
    with pytest.raises(InputError, match="no set to average"):
        average([])


def tied(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, gold = alike(rng, n)
    return np.round(2 * a) / 2, np.round(2 * b) / 2, np.clip(np.round(gold + 2.5), 0, 5)


def skewed(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, gold = (np.exp(v / 2) for v in alike(rng, n))
    return a, b, gold


def cosines(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a collapsed space and of a healthy one, equally good."""
    a, b, gold = alike(rng, n)
    return 0.95 + 0.05 * np.tanh(a / 4), np.tanh(b / 4), gold


def alarms(draw: Draw, kind: str, n: int, trials: int, effect: float = 0.0) -> int:
    """How often two systems seem to differ; effect: how much of the gold scores is added to the second one's."""
    rng = np.random.default_rng([7, n])
    found = 0
    for trial in range(trials):
        a, b, gold = draw(rng, n)
        systems = {"a": Correlation(a, gold, kind), "b": Correlation(b + effect * gold, gold, kind)}
        (difference,) = correct_p_values(compare(systems, seed=trial, resamples=1, swaps=499).differences.values())
        found += difference.significant
    return found


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_few_false_alarms(kind: str) -> None:
    assert alarms(alike, kind, 50, 200) <= 20  # of 10 expected


@pytest.mark.validation
@pytest.mark.parametrize("n", [12, 30, 100, 400])
@pytest.mark.parametrize("draw", [alike, tied, skewed, cosines])
@pytest.mark.parametrize("kind", CORRELATIONS)
def test_false_alarms_of_correlations(kind: str, draw: Draw, n: int) -> None:
    assert alarms(draw, kind, n, 1000) <= 70


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_real_differences_are_found(kind: str) -> None:
    """As often as theory says: r from 0.707 to 0.781, 0.835 between the systems, is found in 97 of 100 trials."""
    assert alarms(alike, kind, 400, 100, effect=0.25) >= 92


@pytest.mark.parametrize("effect", [0.0, 0.1, 0.2])
def test_p_value_of_pearson_is_near_that_of_williams(effect: float) -> None:
    """Williams' test of two dependent correlations (Steiger 1980), which is for Gaussian scores alone."""
    a, b, gold = alike(np.random.default_rng(12), 500)
    b = b + effect * gold
    n, (x, y, z) = 500, (np.corrcoef(*pair)[0, 1] for pair in ((a, gold), (b, gold), (a, b)))
    volume = 1 - x**2 - y**2 - z**2 + 2 * x * y * z
    middle = 2 * (n - 1) / (n - 3) * volume + ((x + y) / 2) ** 2 * (1 - z) ** 3
    t = (y - x) * math.sqrt((n - 1) * (1 + z) / middle)
    found = compare({"a": Correlation(a, gold, "pearson"), "b": Correlation(b, gold, "pearson")}).differences["b"]
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), n - 3), abs=0.03)


@pytest.mark.validation
def test_false_alarms_among_many_comparisons() -> None:
    """Five repairs on six sets: any "significant" at all is a false alarm."""
    rng = np.random.default_rng(8)
    found = 0
    for trial in range(300):
        differences = []
        for name in "uvwxyz":
            gold, common = rng.normal(size=(2, 60))
            systems = {str(i): Correlation(gold + 0.8 * common + 0.6 * rng.normal(size=60), gold) for i in range(6)}
            differences += compare(systems, seed=trial, items=name, resamples=1, swaps=1999).differences.values()
        found += any(d.significant for d in correct_p_values(differences))
    assert found <= 21  # 7 in 100


@pytest.mark.validation
@pytest.mark.parametrize("n", [10, 50, 300])
def test_false_alarms_of_means(n: int) -> None:
    """Values of queries such as nDCG: many zeros and ones, and a long tail between."""
    rng = np.random.default_rng([9, n])
    found = 0
    for trial in range(1000):
        easy = rng.random(n)
        a, b = (np.where(rng.random(n) < easy, rng.beta(0.5, 0.2, n), 0.0) for _ in range(2))
        difference = compare({"a": Mean(a), "b": Mean(b)}, seed=trial, resamples=1, swaps=499).differences["b"]
        found += difference.p < 0.05
    assert found <= 70


@pytest.mark.validation
@pytest.mark.parametrize("kind", CORRELATIONS)
def test_intervals_hold_the_truth(kind: str) -> None:
    """In 93 to 97 of 100 trials or more: scores of one system, and differences of two that are equally good."""
    a, _, gold = alike(np.random.default_rng(10), 1_000_000)
    truth = Correlation(a, gold, kind).value
    rng = np.random.default_rng(11)
    scores = differences = 0
    for trial in range(1000):
        a, b, gold = alike(rng, 120)
        found = compare(
            {"a": Correlation(a, gold, kind), "b": Correlation(b, gold, kind)}, seed=trial, resamples=999, swaps=1
        )
        scores += found.scores["a"].low <= truth <= found.scores["a"].high
        differences += found.differences["b"].low <= 0 <= found.differences["b"].high
    assert scores >= 930
    assert differences >= 930
