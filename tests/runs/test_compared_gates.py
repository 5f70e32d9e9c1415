"""Gates on two runs: on each of them, on changes and on two-sample tests."""

from __future__ import annotations

import math

import pytest

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.gate import check_one_run, parse
from isotrope.runs.compared_gates import decide_gates, list_measures, select_pairs
from isotrope.runs.comparison import compare
from isotrope.runs.layer_tests import LayerTests
from isotrope.two_sample import SetComparison, ShiftTest

BASELINE = Findings(
    [
        Reading(0, "mean_cosine", 0.1, 0.08, 0.12),
        Reading(1, "mean_cosine", 0.2, 0.15, 0.25),
        Reading(1, "mean_cosine", 0.9, variant="published"),
        Reading(1, "isoscore", 0.5),
        Reading(1, "hubness", math.nan, reason="too few rows"),
    ],
    layers=[0, 1],
)
NOW = Findings(
    [
        Reading(0, "mean_cosine", 0.1, 0.08, 0.12),
        Reading(1, "mean_cosine", 0.5, 0.45, 0.55),
        Reading(1, "mean_cosine", 0.1, variant="published"),
        Reading(1, "hubness", 3.0),
        Reading(1, "norm_variation", 0.3),
    ],
    layers=[0, 1],
)


def _tests(shift: float, p: float) -> SetComparison:
    tests = (
        ShiftTest("mean_shift", shift, shift - 0.1, shift + 0.1, p, min(3 * p, 1.0)),
        ShiftTest("covariance", 0.02, 0.0, 0.05, 0.4, 0.8),
        ShiftTest("neighbourhoods", 0.03, 0.01, 0.06, 0.02, 0.06),
    )
    return SetComparison("independent", tests, (500, 400))


TESTS = [LayerTests(0, 0, _tests(0.2, 0.3)), LayerTests(1, 1, _tests(0.8, 0.002))]


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("mean_shift.p < 0.01", True),
        ("mean_shift.corrected < 0.01", True),
        ("mean_shift.corrected < 0.005", False),
        ("mean_shift > 0.5", True),
        ("mean_shift.effect > 0.85", False),
        ("mean_shift.effect.high > 0.85", True),
        ("mean_shift.low > 0.75", False),
        ("layer[0].mean_shift.p < 0.01", False),
        ("any.mean_shift.p < 0.01", True),
        ("all.mean_shift.p < 0.01", False),
        ("neighbourhoods.effect > 0.05", False),
        ("covariance.high > 0.04", True),
        ("change.mean_cosine > 0.25", True),
        ("change.mean_cosine > 0.35", False),
        ("change.mean_cosine.low > 0.15", True),  # 0.45 - 0.25
        ("change.mean_cosine.low > 0.25", False),
        ("change.mean_cosine.high > 0.35", True),  # 0.55 - 0.15
        ("layer[0].change.mean_cosine > 0.01", False),
        ("any.change.mean_cosine > 0.25", True),
        ("all.change.mean_cosine > -0.5", True),  # without the published variant, which fell by 0.8
        ("now.mean_cosine > 0.4", True),
        ("mean_cosine > 0.4", True),  # without a side: now
        ("baseline.mean_cosine > 0.4", False),
        ("now.hubness > 2", True),
    ],
)
def test_decides(text: str, fails: bool) -> None:
    (changes,) = compare([BASELINE, NOW])
    (outcome,) = decide_gates([parse(text)], (BASELINE, NOW), changes, TESTS)
    assert not outcome.undecided, outcome.text
    assert outcome.failed is fails
    assert outcome.text.startswith("gate tripped: " if fails else "gate passed: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mean_shift.p < 0.01", "gate tripped: layer[1].mean_shift.p is 0.002, below 0.01."),
        ("change.mean_cosine > 0.05", "gate tripped: layer[1].change.mean_cosine is 0.3, above 0.05."),
        ("layer[0].now.mean_cosine.low > 0.5", "gate passed: layer[0].now.mean_cosine.low is 0.08, not above 0.5."),
    ],
)
def test_says_the_numbers(text: str, sentence: str) -> None:
    (changes,) = compare([BASELINE, NOW])
    (outcome,) = decide_gates([parse(text)], (BASELINE, NOW), changes, TESTS)
    assert outcome.text == sentence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("now.isoscore > 1", "the run has no reading of 'isoscore'; scan with --measures isoscore."),
        ("baseline.norm_variation > 1", "the first run has no reading of 'norm_variation'"),
        ("change.isoscore > 1", "the runs do not both have a reading of 'isoscore'"),
        ("change.hubness > 1", "undefined (a run has no value of it)"),
        ("layer[7].mean_shift.p < 0.1", "the gate names layer 7"),
        ("neighbour_overlap < 0.5", "do not hold the same items"),
        ("row_cosine.low < 0.5", "do not hold the same items"),
    ],
)
def test_cannot_be_decided(text: str, why: str) -> None:
    (changes,) = compare([BASELINE, NOW])
    (outcome,) = decide_gates([parse(text)], (BASELINE, NOW), changes, TESTS)
    assert (outcome.undecided, outcome.failed) == (True, False)
    assert why in outcome.text


def test_a_test_that_was_not_possible_says_why() -> None:
    (changes,) = compare([BASELINE, NOW])
    tests = [LayerTests(1, 1, reason="rows of width 3 and 4 cannot be tested")]
    (outcome,) = decide_gates([parse("covariance.p < 0.1")], (BASELINE, NOW), changes, tests)
    assert outcome.undecided
    assert "rows of width 3 and 4" in outcome.text


def test_measures_that_gates_need() -> None:
    gates = [parse(text) for text in ("now.hubness > 2", "mean_shift.p < 1", "change.eee > 0", "row_cosine < 0.9")]
    assert list_measures(gates) == ["hubness", "eee"]
    for text, why in (
        ("mean_cosine.p < 0.1", "of tests only"),
        ("now.mean_shift > 1", "leave out now"),
        ("row_cosine.p < 0.1", "has no p"),
    ):
        with pytest.raises(InputError, match=why):
            list_measures([parse(text)])


def test_layers_that_are_tested() -> None:
    pairs = [(0, 0), (3, 15), (6, 30)]

    def select(*texts: str, wanted: list | None = None) -> list:
        return [first for first, _ in select_pairs([parse(text) for text in texts], pairs, wanted)]

    assert select() == [6]
    assert select(wanted=[0]) == [0]
    assert select("layer[3].mean_shift > 1") == [3, 6]
    assert select("mean_shift > 1", wanted=[0]) == [0, 6]
    assert select("any.mean_shift > 1") == [0, 3, 6]
    assert select("any.change.mean_cosine > 1", "layer[9].covariance > 1") == [6]


def test_one_run_has_no_change() -> None:
    check_one_run([parse("mean_cosine > 0.5"), parse("any.isoscore.low < 0.1")])
    for text in ("change.mean_cosine > 0.5", "now.mean_cosine > 0.5", "mean_shift.p < 0.01"):
        with pytest.raises(InputError, match="compares two runs"):
            check_one_run([parse(text)])
