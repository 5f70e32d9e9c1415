"""Norms, variance and their trade-off against frequency, in several layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.figures.record import YAMAGIWA, figure
from isotrope.figures.trend import trend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Layers that are shown.
_LAYERS = 5


@figure(
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
def frequency_layers(run: RunData, figure: Figure) -> None:
    """A row of four scatters for each layer."""
    layers = run.some_layers(_LAYERS)
    grid = figure.subplots(len(layers), 4, squeeze=False)
    for row, layer in zip(grid, layers, strict=True):
        types = run.types(layer)
        for axes, values, letter in zip(row, (types.q, types.m, types.v), "QMV", strict=False):
            trend(axes, np.log10(types.n), np.log10(1 + values), size=2)
            axes.set_xlabel("log₁₀ n" if layer == layers[-1] else "")
            axes.set_ylabel(f"log₁₀(1 + {letter})")
        trend(row[3], types.m, types.v, size=2, letters=("M", "V"))
        row[3].set_xlabel("M" if layer == layers[-1] else "")
        row[3].set_ylabel("V")
        row[0].annotate(
            f"layer {run.name(layer)}",
            (0, 0.5),
            xytext=(-38, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="center",
            fontweight="bold",
        )
