"""Comparisons: beyond its interval, within, or no interval."""

from __future__ import annotations

import math

import pytest

from isotrope.comparison import compare, to_frame
from isotrope.errors import InputError
from isotrope.findings import Findings, Reading


def _run(*readings: Reading) -> Findings:
    return Findings(list(readings), layers=[0])


@pytest.mark.parametrize(
    ("first", "second", "beyond"),
    [
        ((0.5, 0.4, 0.6), (0.8, 0.7, 0.9), True),
        ((0.8, 0.7, 0.9), (0.5, 0.4, 0.6), True),
        ((0.5, 0.4, 0.6), (0.6, 0.5, 0.7), False),
        ((0.5, 0.4, 0.6), (0.7, 0.6, 0.8), False),  # they touch
        ((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), False),
        ((0.5, math.nan, math.nan), (0.8, 0.7, 0.9), None),
        ((0.5, 0.4, 0.6), (0.8, math.nan, math.nan), None),
        ((math.nan, math.nan, math.nan), (0.8, 0.7, 0.9), None),
    ],
)
def test_beyond(first: tuple, second: tuple, beyond: bool | None) -> None:
    ((change,),) = compare([_run(Reading(0, "x", *first)), _run(Reading(0, "x", *second))])
    assert change.beyond is beyond
    assert change.difference == pytest.approx(second[0] - first[0], nan_ok=True)
    assert change.note is None


def test_different_numbers_of_rows() -> None:
    ((change,),) = compare([_run(Reading(0, "x", 1.0, n=1000)), _run(Reading(0, "x", 1.0, n=20))])
    assert change.note == "n differs: 1,000 and 20"


def test_only_what_they_share() -> None:
    first = _run(Reading(0, "x", 1.0), Reading(1, "x", 1.0), Reading(0, "x", 1.0, group="de"), Reading(None, "r", 0.1))
    second = _run(Reading(0, "x", 2.0), Reading(0, "y", 1.0), Reading(0, "x", 3.0, group="de"), Reading(None, "r", 0.1))
    (changes,) = compare([first, second])
    assert [(c.layer, c.measure, c.group, c.difference) for c in changes] == [
        (0, "x", None, 1.0),
        (0, "x", "de", 2.0),
        (None, "r", None, 0.0),
    ]
    frame = to_frame(changes)
    assert frame["difference"].tolist() == [1.0, 2.0, 0.0]


def test_several_runs_against_the_first() -> None:
    runs = [_run(Reading(0, "x", value)) for value in (1.0, 2.0, 4.0)]
    assert [[c.difference for c in changes] for changes in compare(runs)] == [[1.0], [3.0]]


def test_refusals() -> None:
    with pytest.raises(InputError, match="two runs"):
        compare([_run()])
    with pytest.raises(InputError, match="share no reading"):
        compare([_run(Reading(0, "x", 1.0)), _run(Reading(1, "x", 1.0))])
