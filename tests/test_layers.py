"""Which layers a specification means."""

from __future__ import annotations

from typing import Any

import pytest

from isotrope.errors import InputError
from isotrope.layers import Choice, resolve_layers, state_names

SEVEN = state_names(7)
BOTH = state_names(3, 2)


def test_names_of_states() -> None:
    assert SEVEN == ["0", "1", "2", "3", "4", "5", "6"]
    assert BOTH == ["encoder.0", "encoder.1", "encoder.2", "decoder.0", "decoder.1"]


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ("all", [0, 1, 2, 3, 4, 5, 6]),
        ("0,6,-1", [0, 6]),
        (" 3 , -7 ", [3, 0]),
        (4, [4]),
        (-1, [6]),
        ([0, "-2"], [0, 5]),
        ((2,), [2]),
        ("1+-1", ["1+6"]),
        ("4..-1,0+2..3,5..5", ["4..6", "0+2..3", 5]),
        (["0+1+2", 3], ["0+1+2", 3]),
        ("L.before_norm", ["6.before_norm"]),
        ("-1.before_norm,6", ["6.before_norm", 6]),
    ],
)
def test_what_a_specification_asks_for(spec: Any, labels: list[Any]) -> None:
    assert [choice.label for choice in resolve_layers(spec, SEVEN)] == labels


def test_a_mix_knows_its_states_and_before_norm_its_place() -> None:
    assert resolve_layers("1+-1", SEVEN) == [Choice("1+6", (1, 6))]
    assert resolve_layers("0+4..-1", SEVEN) == [Choice("0+4..6", (0, 4, 5, 6))]
    assert resolve_layers("encoder.1..encoder.2", BOTH) == [Choice("1..2", (1, 2))]
    assert resolve_layers("L.before_norm", SEVEN) == [Choice("6.before_norm", (6,), before_norm=True)]


def test_names_and_numbers_run_through_the_encoder_then_the_decoder() -> None:
    assert [c.label for c in resolve_layers("encoder.2,decoder.0,-1", BOTH)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("spec", "names", "message"),
    [
        ("7", SEVEN, r"there is no layer '7': the model has layers 0 to 6 \(or -7 to -1\)\.$"),
        (-8, SEVEN, "there is no layer '-8'"),
        ("last", SEVEN, "there is no layer 'last'"),
        ("", SEVEN, "there is no layer ''"),
        ("1+9", SEVEN, "there is no layer '9'"),
        ("4..7", SEVEN, "there is no layer '7'"),
        ("4..", SEVEN, "there is no layer ''"),
        ("-1..4", SEVEN, r"the layers '-1..4' run from 6 to 4; name the lower one first\.$"),
        ([], SEVEN, "no layer was named; say all, or numbers such as 0,6,-1"),
        ("decoder.2", BOTH, r"there is no layer 'decoder.2': .*, by name encoder.0 to decoder.1\.$"),
        ("3.before_norm", SEVEN, r"only the last layer has a state before the final norm: say 6\.before_norm\.$"),
    ],
)
def test_layers_that_are_not_there_are_refused_in_one_sentence(spec: Any, names: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_layers(spec, names)
