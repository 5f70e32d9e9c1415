"""How the singular values of all rows are distributed, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.figures.layer_colours import layer_bar, layer_colours, share_axes
from isotrope.figures.record import YAN, figure
from isotrope.figures.run_data import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


def draw_distribution(axes: Axes, singular: Vector, colour: object) -> None:
    """The share of singular values, (d,), at or below each share of the largest; unknown ones are left out."""
    known = np.sort(singular[np.isfinite(singular)])
    share = np.arange(1, len(known) + 1) / len(known)
    axes.step(np.append(0.0, known / known[-1]), np.append(0.0, share), where="post", color=colour, linewidth=1.1)


@figure(
    "spectra",
    shows=(
        "Cumulative distribution of the singular values of all rows, divided by the largest, for every layer: the "
        "steeper at the left, the fewer directions carry the rows."
    ),
    answers=f"{YAN}, Figs. 1 and 8, for all rows as one matrix",
    needs=("spectra",),
)
def spectra(run: RunData, figure: Figure) -> None:
    """One cumulative curve for each layer."""
    axes = figure.subplots()
    for layer, colour in zip(run.layers, layer_colours(len(run.layers)), strict=True):
        draw_distribution(axes, run.table("spectra", layer)["singular_value"].to_numpy(), colour)
    share_axes(axes)
    layer_bar(figure, axes, [run.name(layer) for layer in run.layers])
