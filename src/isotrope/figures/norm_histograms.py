"""How Q, M and V are distributed over token types, in several layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.figures.layer_colours import layer_bar, layer_colours
from isotrope.figures.record import YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_BARS = 40

#: Layers whose outlines can still be told apart.
_LAYERS = 7


@figure(
    "norm-histograms",
    page=True,
    shows=(
        "Distribution over token types of the logarithms of the mean squared norm Q, the squared norm of the mean M "
        "and the variance V, in up to seven layers from the first to the last; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Figs. 14 to 16",
    needs=("tokens",),
    height=2.2,
)
def norm_histograms(run: RunData, figure: Figure) -> None:
    """Outlines of histograms, one for each layer; logarithms, because layers differ widely in length."""
    panels = figure.subplots(1, 3, sharey=True)
    layers = run.some_layers(_LAYERS)
    by_layer = [run.types(layer) for layer in layers]
    for axes, place, letter in zip(panels, ("q", "m", "v"), "QMV", strict=True):
        columns = [np.log10(1 + getattr(types, place)) for types in by_layer]
        edges = np.linspace(min(map(np.min, columns)), max(map(np.max, columns)), _BARS + 1)
        if edges[0] == edges[-1]:
            edges = np.linspace(edges[0] - 0.5, edges[0] + 0.5, _BARS + 1)
        for column, colour in zip(columns, layer_colours(len(columns)), strict=True):
            axes.stairs(np.histogram(column, edges)[0] / len(column), edges, color=colour, linewidth=0.9)
        axes.set_xlabel(f"log₁₀(1 + {letter})")
    panels[0].set_ylabel("share of token types")
    layer_bar(figure, panels, [run.name(layer) for layer in layers])
