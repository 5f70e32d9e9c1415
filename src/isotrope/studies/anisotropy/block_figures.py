"""Figures 6 to 10 of Godey et al. 2023: a block by the norm of the bias, and histograms of its scores."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrope.drawing.log_axis import use_log_axis
from isotrope.drawing.style import BLACK, BLUE, GREY, ORANGE, PAGE_WIDTH
from isotrope.studies.figures import StudyFigure, make_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The panels: name of the values, columns with their labels, and whether the axis is logarithmic.
PANELS: tuple[tuple[str, dict[str, str], bool], ...] = (
    ("mean cosine", {"input_cosine": "input", "output_cosine": "output"}, False),
    ("output less input cosine", {"cosine_gain": "difference"}, True),
    (
        "norm",
        {
            "input_norm": "input, E‖x‖",
            "output_norm": "output, E‖x‖",
            "input_mean_norm": "input, ‖E x‖",
            "output_mean_norm": "output, ‖E x‖",
        },
        False,
    ),
    ("score before softmax", {"score_mean": "mean", "score_deviation": "deviation"}, False),
    ("norm", {"query_norm": "queries", "key_norm": "keys"}, False),
    ("mean cosine", {"query_cosine": "queries", "key_cosine": "keys"}, False),
    (
        "weights of a position",
        {
            "softmax_max": "largest",
            "softmax_median": "median",
            "softmax_min": "smallest",
            "no_bAx_max": "largest, no bᵀAx",
        },
        True,
    ),
    (
        "weights of a sequence",
        {
            "softmax_sequence_max": "largest",
            "softmax_sequence_median": "median",
            "softmax_sequence_min": "smallest",
            "no_bAx_sequence_max": "largest, no bᵀAx",
        },
        True,
    ),
)

_STYLES = ((BLUE, "-"), (ORANGE, "-"), (BLACK, "-"), (GREY, "--"))
_PAIRED = ((BLUE, "-"), (ORANGE, "-"), (BLUE, "--"), (ORANGE, "--"))


def make_block_figures(name: str, title: str, frame: pd.DataFrame, scores: pd.DataFrame) -> list[StudyFigure]:
    """Figures of one block.

    Args:
        name: of the files.
        title: of the block.
        frame: a row for each draw and norm of the bias; lines are means over draws.
        scores: the bins of the histograms of one draw; empty where attention hides its scores.
    """
    what = (
        "cosines and their difference, norms, scores, queries and keys, and weights of the softmax by norm of the bias"
    )
    draw = partial(draw_block, frame.groupby("bias_norm", sort=True).mean(numeric_only=True).reset_index())
    figures = [make_figure(name, f"{title}: {what}.", draw, width=PAGE_WIDTH, height=7.6)]
    if len(scores):
        what = "histograms of the scores before the softmax by norm of the bias, each on its own axis"
        fill = partial(draw_histograms, scores)
        figures.append(make_figure(f"{name}_scores", f"{title}: {what}.", fill, width=PAGE_WIDTH, height=3.4))
    return figures


def draw_block(frame: pd.DataFrame, figure: Figure) -> None:
    """Draw the panels, with legends above them; frame: a row for each norm of the bias."""
    panels = figure.subplots(math.ceil(len(PANELS) / 2), 2).flat
    for axes, (label, columns, logarithmic) in zip(panels, PANELS, strict=True):
        styles = _PAIRED if "input_norm" in columns else _STYLES
        for (column, named), (colour, line) in zip(columns.items(), styles, strict=False):
            if column in frame and frame[column].notna().any():
                values = frame[column].astype(float)
                axes.plot(frame["bias_norm"], values, label=named, color=colour, linestyle=line, marker=".")
        axes.set_xlabel("norm of the bias")
        axes.set_ylabel(label)
        if not axes.lines:
            axes.set_title("not shown by this attention")
            continue
        drawn = [line.get_ydata() for line in axes.lines]
        if logarithmic and all((values > 0).all() for values in drawn):
            use_log_axis(axes)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, columnspacing=1.0)


def draw_histograms(scores: pd.DataFrame, figure: Figure) -> None:
    """Draw one histogram for each norm of the bias; scores: left and right end and count of each bin."""
    groups = list(scores.groupby("bias_norm", sort=True))
    columns = min(len(groups), 3)
    panels: Any = figure.subplots(math.ceil(len(groups) / columns), columns, squeeze=False).flat
    for (norm, bins), axes in zip(groups, panels, strict=False):
        share = bins["count"] / bins["count"].sum()
        axes.stairs(share, [*bins["left"], bins["right"].iloc[-1]], fill=True, color=BLUE)
        axes.axvline(0.0, color=GREY, linewidth=0.6)
        axes.set_title(f"bias {norm:g}")
        axes.locator_params(axis="x", nbins=3)
    for axes in list(panels):
        axes.set_axis_off()
    figure.supxlabel("score before the softmax")
    figure.supylabel("share")
