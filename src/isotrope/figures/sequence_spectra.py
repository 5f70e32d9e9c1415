"""How the singular values of a sequence's tokens are distributed, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.figures.layer_colours import layer_bar, layer_colours, share_axes
from isotrope.figures.record import YAN, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "sequence-spectra",
    shows=(
        "Cumulative distribution of the singular values of each sequence's token matrix, divided by its largest, "
        "averaged over sequences, for every layer: the further up and left, the more directions have vanished."
    ),
    answers=f"{YAN}, Figs. 1 and 8 and the upper rows of 9 to 13",
    needs=("sequence_cdf",),
)
def sequence_spectra(run: RunData, figure: Figure) -> None:
    """One cumulative curve for each layer."""
    axes = figure.subplots()
    layers = [layer for layer in run.layers if len(run.table("sequence_cdf", layer))]
    for layer, colour in zip(layers, layer_colours(len(layers)), strict=True):
        curve = run.table("sequence_cdf", layer)
        axes.plot(curve["x"], curve["cdf"], color=colour, linewidth=1.1)
    share_axes(axes)
    layer_bar(figure, axes, [run.name(layer) for layer in layers])
