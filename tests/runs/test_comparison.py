"""Comparisons: beyond its interval, within, or no interval."""

from __future__ import annotations

import math

import pytest

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.runs.comparison import compare


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
    assert [change.describe()["difference"] for change in changes] == [1.0, 2.0, 0.0]


def _model(states: int, *layers: int | str, names: dict[str, str] | None = None) -> Findings:
    """A run of a model with so many hidden states; the value of x in a layer is its place among the layers."""
    labels = list(layers) or list(range(states))
    readings = [Reading(label, "x", float(i)) for i, label in enumerate(labels)] + [Reading(None, "r", 1.0)]
    return Findings(readings, layers=labels, layer_names=names or {}, source={"states": states})


def test_models_of_different_depth_are_compared_at_the_same_relative_depth() -> None:
    """The layers of 6 blocks lie at sixths of the way, every fifth one of 30 blocks."""
    (changes,) = compare([_model(7), _model(31)])
    assert [(c.layer, c.other_layer, c.after) for c in changes if c.layer is not None] == [
        (i, 5 * i, 5.0 * i) for i in range(7)
    ]
    assert [c.measure for c in changes if c.layer is None] == ["r"]
    found = changes.alignment
    assert (found.by, found.only_first) == ("depth", [])
    assert found.only_second == [i for i in range(31) if i % 5]
    (back,) = compare([_model(31), _model(7)])
    assert [(c.layer, c.other_layer) for c in back if c.layer is not None] == [(5 * i, i) for i in range(7)]
    assert back.alignment.only_first == found.only_second


@pytest.mark.parametrize(("few", "many"), [(7, 11), (7, 13), (13, 25), (4, 33), (2, 7)])
def test_every_layer_of_the_shallower_model_has_the_nearest_partner(few: int, many: int) -> None:
    (changes,) = compare([_model(few), _model(many)])
    pairs = changes.alignment.pairs
    assert [one for one, _ in pairs] == list(range(few))
    assert len({other for _, other in pairs}) == few
    for one, other in pairs:
        nearest = min(abs(one / (few - 1) - i / (many - 1)) for i in range(many))
        assert abs(one / (few - 1) - other / (many - 1)) == pytest.approx(nearest)


def test_layers_that_were_left_out_of_a_scan_count_for_the_depth() -> None:
    (changes,) = compare([_model(7, 3, 6), _model(31, 0, 15, 30)])
    assert changes.alignment.pairs == [(3, 15), (6, 30)]
    assert changes.alignment.only_second == [0]
    with pytest.raises(InputError, match="share no reading"):  # the first layer of one, the last of the other
        compare([Findings([Reading(0, "x", 1.0)], [0], source={"states": 7}), _without_across(_model(31, 30))])


def _without_across(run: Findings) -> Findings:
    return Findings([r for r in run.readings if r.layer is not None], run.layers, source=run.source)


def test_the_same_layers_are_compared_by_name_and_others_on_request() -> None:
    (changes,) = compare([_model(7), _model(7)])
    assert changes.alignment.by == "name"
    assert all(c.layer == c.other_layer for c in changes)
    (changes,) = compare([_model(7), _model(31)], align="name")
    assert changes.alignment.pairs == [(i, i) for i in range(7)]
    assert changes.alignment.only_second == list(range(7, 31))
    with pytest.raises(InputError, match="cannot be aligned by 'size'; say depth or name"):
        compare([_model(7), _model(7)], align="size")


def _two_stacks(encoder: int, decoder: int) -> Findings:
    names = [f"encoder.{i}" for i in range(encoder)] + [f"decoder.{i}" for i in range(decoder)]
    return _model(encoder + decoder, names={str(i): name for i, name in enumerate(names)})


def test_encoders_are_compared_with_encoders() -> None:
    """The third state of one model is its decoder's first, that of the other its encoder's last."""
    (changes,) = compare([_two_stacks(2, 3), _two_stacks(3, 5)])
    assert changes.alignment.pairs == [(0, 0), (1, 2), (2, 3), (3, 5), (4, 7)]
    assert changes.alignment.only_second == [1, 4, 6]
    (changes,) = compare([_two_stacks(3, 5), _model(5)])
    assert changes.alignment.pairs == [(0, 0), (1, 2), (2, 4)]
    assert changes.alignment.only_first == [3, 4, 5, 6, 7]


def test_layers_without_a_number_are_compared_by_name() -> None:
    first, second = _model(7, 0, 6, "encoded", "1+6"), _model(13, 0, 12, "encoded", "1+12")
    (changes,) = compare([first, second])
    assert changes.alignment.pairs == [(0, 0), (6, 12), ("encoded", "encoded")]
    assert (changes.alignment.only_first, changes.alignment.only_second) == (["1+6"], ["1+12"])


def test_vectors_are_compared_with_the_output_of_a_model() -> None:
    (changes,) = compare([_model(7), Findings([Reading(0, "x", 9.0)], [0])])
    assert changes.alignment.pairs == [(6, 0)]
    assert [c.after for c in changes] == [9.0]


def test_several_runs_against_the_first() -> None:
    runs = [_run(Reading(0, "x", value)) for value in (1.0, 2.0, 4.0)]
    assert [[c.difference for c in changes] for changes in compare(runs)] == [[1.0], [3.0]]


def test_refusals() -> None:
    with pytest.raises(InputError, match="two runs"):
        compare([_run()])
    with pytest.raises(InputError, match="share no reading"):
        compare([_run(Reading(0, "x", 1.0)), _run(Reading(1, "x", 1.0))])
