"""Gates: the grammar, and what it decides."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.gate import check, check_layers, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean_cosine > 0.5", ("-1", "mean_cosine", "value", ">", 0.5)),
        ("mean_cosine>0.5", ("-1", "mean_cosine", "value", ">", 0.5)),
        ("  mean_cosine  >=  .5 ", ("-1", "mean_cosine", "value", ">=", 0.5)),
        ("layer[-1].mean_cosine < 1e-3", ("-1", "mean_cosine", "value", "<", 1e-3)),
        ("layer[ 3 ] . isoscore <= -2.", ("3", "isoscore", "value", "<=", -2.0)),
        ("layer[encoder.3].isoscore == 1", ("encoder.3", "isoscore", "value", "==", 1.0)),
        ("layer[1+6].isoscore != +1", ("1+6", "isoscore", "value", "!=", 1.0)),
        ("any.mean_cosine.low > 0.9", ("any", "mean_cosine", "low", ">", 0.9)),
        ("all.explained_variance_3.high < 0.1", ("all", "explained_variance_3", "high", "<", 0.1)),
    ],
)
def test_grammar(text: str, expected: tuple) -> None:
    gate = parse(text)
    assert (gate.scope, gate.measure, gate.end, gate.compare, gate.number) == expected
    assert gate.text == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "mean_cosine",
        "mean_cosine > ",
        "> 0.5",
        "0.5 < mean_cosine",
        "mean_cosine > 0.5 and isoscore < 1",
        "mean_cosine > x",
        "mean_cosine > nan",
        "mean_cosine > inf",
        "mean_cosine > 1e999",
        "mean_cosine => 0.5",
        "mean_cosine = 0.5",
        "mean_cosine.middle > 0.5",
        "layer[].mean_cosine > 0.5",
        "layer[-1] > 0.5",
        "some.mean_cosine > 0.5",
        "layer[any].mean_cosine > 0.5",
        "__import__('os').system('true') > 0",
        "mean_cosine > 0.5\nmean_cosine > 0.5",
        "mean_cosine > " + "9" * 500,
        "m" * 500 + " > 1",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        parse(text)


_NAMES = ("layer", "any", "all", "mean_cosine", "isoscore", "low", "high", "eval")
_SIGNS = ("[", "]", ".", ">", "<=", "==", " ", "_", "(", ")", "e", "\x00", "\n", "é", "-1", "0.5", "1e9", "1e99")
_PIECES = st.sampled_from(_NAMES + _SIGNS)


@given(st.text(max_size=60) | st.lists(_PIECES, max_size=12).map("".join))
def test_any_text_is_a_gate_or_an_input_error(text: str) -> None:
    try:
        gate = parse(text)
    except InputError:
        return
    assert math.isfinite(gate.number)
    try:
        check(gate, RUN)
    except InputError:
        return


def _reading(layer: int | str | None, value: float, measure: str = "mean_cosine", **more: object) -> Reading:
    return Reading(layer, measure, value, value - 0.1, value + 0.1, n=100, **more)  # type: ignore[arg-type]


RUN = Findings(
    readings=[
        _reading(0, 0.1),
        _reading(1, 0.6),
        _reading("2.before_norm", 0.3),
        _reading(0, 0.99, group="de"),
        _reading(0, 0.99, variant="published"),
        Reading(0, "isoscore", math.nan, reason="IsoScore needs at least two rows"),
        Reading(0, "eee", 0.2),
        _reading(None, 0.8, "drift_correlation_pearson"),
        _reading(None, 0.1, "drift_correlation_pearson", group="de"),
    ],
    layers=[0, 1, "2.before_norm"],
)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("mean_cosine > 0.2", True),  # without a layer: the last one
        ("mean_cosine > 0.35", False),
        ("mean_cosine.high > 0.35", True),
        ("mean_cosine.low > 0.25", False),
        ("layer[-2].mean_cosine > 0.5", True),
        ("layer[0].mean_cosine > 0.5", False),
        ("layer[2.before_norm].mean_cosine > 0.2", True),
        ("any.mean_cosine > 0.5", True),
        ("any.mean_cosine > 0.7", False),
        ("all.mean_cosine > 0.05", True),
        ("all.mean_cosine > 0.2", False),
        ("drift_correlation_pearson > 0.5", True),  # across layers
        ("any.drift_correlation_pearson > 0.5", True),
        ("all.drift_correlation_pearson > 0.9", False),
    ],
)
def test_decides(text: str, fails: bool) -> None:
    outcome = check(parse(text), RUN)
    assert outcome.failed is fails
    assert outcome.text.startswith("gate tripped: " if fails else "gate passed: ")
    assert f"{parse(text).number:g}." in outcome.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "any.mean_cosine > 0.2",
            "gate tripped: layer[1].mean_cosine is 0.6, layer[2.before_norm].mean_cosine is 0.3, above 0.2.",
        ),
        ("mean_cosine >= 0.30", "gate tripped: layer[2.before_norm].mean_cosine is 0.3, at or above 0.3."),
        ("layer[0].mean_cosine < 0.5", "gate tripped: layer[0].mean_cosine is 0.1, below 0.5."),
        ("layer[0].mean_cosine > 0.5", "gate passed: layer[0].mean_cosine is 0.1, not above 0.5."),
        ("drift_correlation_pearson <= 0.5", "gate passed: drift_correlation_pearson is 0.8, not at or below 0.5."),
        (
            "any.mean_cosine > 0.7",
            "gate passed: layer[0].mean_cosine is 0.1, layer[1].mean_cosine is 0.6, "
            "layer[2.before_norm].mean_cosine is 0.3, none above 0.7.",
        ),
        (
            "all.mean_cosine > 0.2",
            "gate passed: layer[0].mean_cosine is 0.1, layer[1].mean_cosine is 0.6, "
            "layer[2.before_norm].mean_cosine is 0.3, not all above 0.2.",
        ),
    ],
)
def test_says_what_holds(text: str, sentence: str) -> None:
    assert check(parse(text), RUN).text == sentence


def test_one_layer_needs_no_name_and_close_numbers_are_told_apart() -> None:
    one = Findings(readings=[_reading(0, 0.114), Reading(0, "isoscore", 0.1000004)], layers=[0])
    assert check(parse("mean_cosine > 0.1"), one).text == "gate tripped: mean_cosine is 0.114, above 0.1."
    assert check(parse("isoscore > 0.1"), one).text == "gate tripped: isoscore is 0.1000004, above 0.1."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("layer[0].isoscore > 0", "needs at least two rows"),
        ("any.isoscore > 0", "needs at least two rows"),
        ("layer[0].eee.low > 0", "no interval"),
        ("self_similarity > 0", "no reading"),
        ("layer[7].mean_cosine > 0", "layer 7"),
        ("layer[-4].mean_cosine > 0", "layer -4"),
        ("layer[decoder.1].mean_cosine > 0", "decoder.1"),
    ],
)
def test_cannot_be_decided(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        check(parse(text), RUN)


def test_layers_are_checked_beforehand() -> None:
    check_layers([parse("layer[-3].isoscore > 0"), parse("any.isoscore > 0"), parse("isoscore > 0")], RUN.layers)
    with pytest.raises(InputError, match="layer 5"):
        check_layers([parse("layer[5].isoscore > 0")], RUN.layers)
