"""Claims on blocks are decided by intervals over draws: agreeing, contradicting and undecided cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isotrope.studies.anisotropy.biased_block import Inputs, apply_bias
from isotrope.studies.anisotropy.block_claims import judge_block, judge_fixed_points, judge_lengths, judge_signs
from isotrope.studies.anisotropy.block_figures import PANELS, draw_block, draw_histograms
from isotrope.studies.model_blocks import make_fresh_block
from isotrope.studies.result import Claim

NORMS = (0.0, 1.0, 5.0, 20.0)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Three draws of a fresh block."""
    records = []
    for seed in range(3):
        block = make_fresh_block(64, seed=seed, vocabulary=1_000)
        inputs = Inputs.draw(block, 2, 40, seed, seed)
        records += [{"block": "fresh", "seed": seed} | record for record in apply_bias(block, inputs, NORMS)]
    return pd.DataFrame(records)


def find_claim(claims: list[Claim], words: str) -> Claim:
    (found,) = (claim for claim in claims if words in claim.text)
    return found


def spoil(frame: pd.DataFrame, column: str, values: Any) -> pd.DataFrame:
    return frame.assign(**{column: values})


def test_a_fresh_block(frame: pd.DataFrame) -> None:
    claims = judge_block(frame, 64)
    for words in (
        "the mean output norm is √d = 8.000",
        "the input cosine is N²/(N² + 0.0256)",
        "mean norm of queries",
        "mean norm of keys",
        "the norm of the mean output",
        "the largest weight of a position",
    ):
        claim = find_claim(claims, words)
        assert claim.outcome == "agrees", words
        assert "over 3 draws" in claim.evidence
    alike = find_claim(claims, "without a bias queries")
    assert alike.outcome == "contradicts"
    assert abs(alike.ours) < 0.02


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("output_norm", "mean output norm"),
        ("input_cosine", "the input cosine is"),
        ("cosine_gain", "output less input"),
        ("query_norm", "norm of queries"),
        ("key_norm", "norm of keys"),
        ("output_mean_norm", "norm of the mean output"),
        ("score_mean", "mean score from zero"),
        ("softmax_max", "largest weight of a position"),
        ("softmax_sequence_max", "largest weight of a sequence"),
    ],
)
def test_each_claim_can_fail(frame: pd.DataFrame, column: str, words: str) -> None:
    falling = -np.tile([1.0, 2.0, 3.0, 4.0], 3) - 0.01 * frame["seed"]
    if column != "cosine_gain":
        falling = 10.0 + falling  # from 9 to 6
    assert find_claim(judge_block(spoil(frame, column, falling), 64), words).outcome == "contradicts"


def test_output_cosines_above_input_cosines(frame: pd.DataFrame) -> None:
    """The share of the gain in what the input cosine lacks to 1 decides, so that a large bias counts as a small one."""
    above = spoil(frame, "cosine_gain", (1 - frame["input_cosine"]) * (0.1 + 0.01 * frame["seed"]))
    assert find_claim(judge_block(above, 64), "output less input").outcome == "agrees"
    at_one = above.assign(cosine_gain=above["cosine_gain"].where(above["bias_norm"] != 1, -above["cosine_gain"]))
    claim = find_claim(judge_block(at_one, 64), "output less input")
    assert claim.outcome == "contradicts"
    assert "not above 0 at 1;" in claim.text


def test_draws_that_differ_decide_nothing(frame: pd.DataFrame) -> None:
    sign = np.where(frame["seed"] == 0, -1.0, 1.0)
    gain = spoil(frame, "cosine_gain", 0.01 * sign)
    assert find_claim(judge_block(gain, 64), "output less input").outcome == "undecided"
    alike = spoil(spoil(frame, "query_cosine", 0.2 + 0.1 * sign), "key_cosine", 0.9)
    assert find_claim(judge_block(alike, 64), "without a bias queries").outcome == "undecided"
    growing = frame["bias_norm"] * sign + 100.0
    assert find_claim(judge_block(spoil(frame, "key_norm", growing), 64), "norm of keys").outcome != "agrees"


def test_one_draw_decides_nothing(frame: pd.DataFrame) -> None:
    claims = judge_block(frame[frame["seed"] == 0], 64)
    assert {claim.outcome for claim in claims} <= {"undecided", "note"}


def test_a_small_bias_does_little(frame: pd.DataFrame) -> None:
    for weights, outcome in (([1.0, 1.001, 1.5, 2.0], "agrees"), ([1.0, 1.8, 1.9, 2.0], "contradicts")):
        given = np.tile(weights, 3) + 1e-4 * frame["seed"]
        claim = find_claim(judge_block(spoil(frame, "softmax_max", given), None), "a bias of 1 does")
        assert claim.outcome == outcome


def make_points(*values: float) -> pd.DataFrame:
    rows = [{"block": "b", "seed": i, "mean of norms": v, "norm of mean": v} for i, v in enumerate(values)]
    return pd.DataFrame(rows)


def test_fixed_points_of_fresh_blocks() -> None:
    for values, outcome in (
        ((8.0, 7.99, 8.01), "agrees"),
        ((9.0, 9.01, 9.02), "contradicts"),
        ((8.0, 9.0, 7.0), "undecided"),
        ((8.0, np.nan, 8.0), "undecided"),
        ((8.0,), "undecided"),
    ):
        assert [claim.outcome for claim in judge_fixed_points(make_points(*values), 64)] == [outcome]
    (claim,) = judge_fixed_points(make_points(np.nan, np.nan), None)
    assert (claim.outcome, "there is no N*" in claim.text) == ("note", True)


def test_fixed_points_and_the_lengths_of_rows() -> None:
    lengths = [5.0, 20.0]  # so that 0.5 to 200 is of one order of magnitude with them
    for values, outcome in (
        ((10.0, 11.0, 12.0), "agrees"),
        ((0.1, 0.11, 0.12), "contradicts"),
        ((190.0, 200.0, 210.0), "undecided"),
    ):
        assert [claim.outcome for claim in judge_lengths("m", make_points(*values), lengths)] == [outcome]
    assert judge_lengths("m", make_points(np.nan), lengths) == []


def test_signs_of_scores() -> None:
    assert judge_signs([0.1, -0.1, 0.2, 0.3], 20.0).outcome == "agrees"
    assert judge_signs([0.1, 0.1, 0.2, 0.3], 20.0).outcome == "undecided"  # the other sign may yet come


def test_the_figure_draws_the_difference_and_all_weights_with_legends_outside(frame: pd.DataFrame) -> None:
    figure = Figure(figsize=(6.75, 7.6), layout="constrained")
    means = frame.groupby("bias_norm").mean(numeric_only=True).reset_index()
    draw_block(means, figure)
    for axes, (_, columns, _logarithmic) in zip(figure.axes, PANELS, strict=True):
        for line, column in zip(axes.lines, columns, strict=True):
            assert line.get_ydata().tolist() == means[column].tolist()
    scales = {label: axes.get_yscale() for axes, (label, *_) in zip(figure.axes, PANELS, strict=True)}
    assert scales["weights of a position"] == scales["weights of a sequence"] == "log"
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes in figure.axes:
        assert axes.get_legend().get_window_extent(canvas.get_renderer()).y0 >= axes.get_window_extent().y1 - 1


def test_histograms_are_drawn_as_counted() -> None:
    bins = pd.DataFrame(
        [
            {"bias_norm": norm, "left": float(i), "right": i + 1.0, "count": i + 1}
            for norm in (0.0, 1.0, 2.0, 3.0)
            for i in range(4)
        ]
    )
    figure = Figure()
    draw_histograms(bins, figure)
    drawn = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in drawn] == ["bias 0", "bias 1", "bias 2", "bias 3"]
    values, edges, _ = drawn[0].patches[0].get_data()  # type: ignore[attr-defined]
    assert values.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert edges.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
