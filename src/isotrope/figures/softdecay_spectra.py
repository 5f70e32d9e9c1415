"""What SoftDecay does to the singular values of all rows, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.figures.layer_colours import layer_bar, layer_colours, share_axes
from isotrope.figures.record import YAN, figure
from isotrope.figures.spectra import draw_distribution
from isotrope.repairs import SoftDecay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "softdecay-spectra",
    page=True,
    shows=(
        "Cumulative distribution of the singular values of all rows, divided by the largest, before (left) and after "
        "(right) SoftDecay with its default α in the form of the paper, for every layer."
    ),
    answers=f"{YAN}, Figs. 3 and 5 and 9 to 13, for all rows as one matrix",
    needs=("statistics",),
)
def softdecay_spectra(run: RunData, figure: Figure) -> None:
    """Two panels of cumulative curves, exact by the moments."""
    before, after = figure.subplots(1, 2, sharey=True)
    repair = SoftDecay(form="paper")
    for layer, colour in zip(run.layers, layer_colours(len(run.layers)), strict=True):
        moments = run.summary(layer).moments
        draw_distribution(before, moments.singular_values, colour)
        affine = repair.fit_moments(moments).affine_
        draw_distribution(after, affine.push(moments).singular_values, colour)
    before.set_title("as they are")
    after.set_title(f"SoftDecay, α = −{-repair.alpha:g}")
    for axes in (before, after):
        share_axes(axes)
    after.set_ylabel("")
    layer_bar(figure, (before, after), [run.name(layer) for layer in run.layers])
