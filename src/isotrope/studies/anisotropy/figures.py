"""Figures of the anisotropy study: layers of all models, and a block under a bias (Godey et al. 2023)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isotrope.drawing.style import BLUE, COLOURS, GREY, ORANGE, PAGE
from isotrope.studies.figures import StudyFigure, make_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def make_layers_figure(every: pd.DataFrame) -> StudyFigure:
    """Figs. 1 to 4: mean cosine by depth (0 to 1), one line for each model."""
    return make_figure("layers", "Mean cosine of rows by depth, one line for each model.", partial(_draw_layers, every))


def _draw_layers(every: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for number, (model, of_model) in enumerate(every.groupby("model", sort=False)):
        axes.plot(
            of_model["depth"],
            of_model["mean_cosine"],
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", ":")[number // len(COLOURS) % 3],
            marker=".",
            label=str(model).rpartition("/")[2],
        )
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.set_xlabel("depth")
    axes.set_ylabel("mean cosine")
    axes.legend()


def make_block_figures(name: str, frame: pd.DataFrame) -> list[StudyFigure]:
    """Figs. 6 to 10 for each block of a table: norms and cosines, scores, queries and keys, weights of the softmax."""
    figures = []
    for number, (block, rows) in enumerate(frame.groupby("block", sort=False)):
        title = f"{block}: cosines and norms, scores, queries and keys, and weights of the softmax by norm of the bias."
        figures.append(make_figure(f"{name}_{number}", title, partial(_draw_block, rows), width=PAGE, height=4.2))
    return figures


#: The panels: title, and columns with their labels.
_PANELS: tuple[tuple[str, dict[str, str]], ...] = (
    ("mean cosine", {"input_cosine": "input", "output_cosine": "output"}),
    (
        "norm",
        {
            "input_norm": "input, mean of norms",
            "output_norm": "output, mean of norms",
            "input_mean_norm": "input, norm of mean",
            "output_mean_norm": "output, norm of mean",
        },
    ),
    ("score before the softmax", {"score_mean": "mean", "score_deviation": "deviation"}),
    ("queries and keys, norm", {"query_norm": "queries", "key_norm": "keys"}),
    ("queries and keys, cosine", {"query_cosine": "queries", "key_cosine": "keys"}),
    (
        "largest weight",
        {
            "softmax_max": "of a position",
            "no_bAx_max": "the same without bᵀAx",
            "softmax_sequence_max": "of a sequence",
            "no_bAx_sequence_max": "the same without bᵀAx",
        },
    ),
)


def _draw_block(frame: pd.DataFrame, figure: Figure) -> None:
    panels = figure.subplots(2, 3).flat
    for axes, (title, columns) in zip(panels, _PANELS, strict=True):
        for number, (column, label) in enumerate(columns.items()):
            if column in frame and frame[column].notna().any():
                how = {"color": (BLUE, ORANGE)[number % 2], "linestyle": ("-", "--")[number // 2], "marker": "."}
                axes.plot(frame["bias_norm"], frame[column].astype(float), label=label, **how)
        axes.set_title(title)
        axes.set_xlabel("norm of the bias")
        if axes.lines:
            axes.legend()
