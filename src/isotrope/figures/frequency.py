"""Norm, norm of the mean and variance of token types against their frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.robust_limits import compute_robust_range
from isotrope.figures.record import YAMAGIWA, register_figure
from isotrope.figures.token_scatter import draw_trend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Layers of the figure of several layers.
_LAYERS = 5


@register_figure(
    "frequency",
    page=True,
    shows=(
        "Q, M and V of each token type against the logarithm of its frequency, in one layer, with least-squares "
        "lines; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Fig. 7",
    needs=("tokens",),
    layer="middle",
)
def draw_frequency(run: RunData, figure: Figure) -> None:
    """Three scatters over token types."""
    types = run.token_types(run.layer)
    panels = figure.subplots(1, 3, sharey=True)
    ranges = [compute_robust_range(values) for values in (types.q, types.m, types.v)]
    shared = min(low for low, _ in ranges), max(high for _, high in ranges)
    for axes, values, letter in zip(panels, (types.q, types.m, types.v), "QMV", strict=True):
        draw_trend(axes, np.log10(types.n), values, names=types.token, letters=("log₁₀ n", letter), y_range=shared)
        axes.set_xlabel("log₁₀ n")
        axes.set_ylabel(f"{letter} (layer {run.layer_name(run.layer)})")


@register_figure(
    "frequency-layers",
    page=True,
    shows=(
        "log₁₀(1 + Q), log₁₀(1 + M) and log₁₀(1 + V) of each token type against the logarithm of its frequency, and V "
        "against M, from the first layer (top) to the last, with least-squares lines."
    ),
    answers=f"{YAMAGIWA}, Figs. 11 to 13",
    needs=("tokens",),
    height=7.6,
)
def draw_frequency_layers(run: RunData, figure: Figure) -> None:
    """A row of four scatters for each layer."""
    layers = run.select_layers(_LAYERS)
    grid = figure.subplots(len(layers), 4, squeeze=False)
    for row, layer in zip(grid, layers, strict=True):
        types = run.token_types(layer)
        for axes, values, letter in zip(row, (types.q, types.m, types.v), "QMV", strict=False):
            draw_trend(axes, np.log10(types.n), np.log10(1 + values), size=2)
            axes.set_xlabel("log₁₀ n" if layer == layers[-1] else "")
            axes.set_ylabel(f"log₁₀(1 + {letter})")
        draw_trend(row[3], types.m, types.v, size=2, letters=("M", "V"))
        row[3].set_xlabel("M" if layer == layers[-1] else "")
        row[3].set_ylabel("V")
        row[0].annotate(
            f"layer {run.layer_name(layer)}",
            (0, 0.5),
            xytext=(-38, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="center",
            fontweight="bold",
        )
