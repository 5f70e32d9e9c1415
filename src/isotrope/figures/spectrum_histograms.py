"""The distribution of a sequence's singular values in a few layers, with the numbers that sum it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE, SMALL, number
from isotrope.figures.record import YAN, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_NUMBERS = (
    ("sequence_spectral_skewness", "skewness"),
    ("sequence_spectral_median", "median"),
    ("sequence_uniformity", "token uniformity"),
    ("cls_uniformity", "first-token uniformity"),
)

#: Bars of the histogram.
_BARS = 25


@figure(
    "spectrum-histograms",
    shows=(
        "Distribution of the singular values of each sequence's token matrix, divided by its largest, averaged over "
        "sequences, in the first, middle and last layer, with skewness, median, token and first-token uniformity."
    ),
    answers=f"{YAN}, Fig. 2",
    needs=("sequence_cdf",),
    measures=tuple(measure for measure, _ in _NUMBERS),
    height=4.2,
)
def spectrum_histograms(run: RunData, figure: Figure) -> None:
    """One histogram above another, from the differences of the cumulative curves."""
    # A layer with one row a sequence, as at the end of a convolution, has no spectra of sequences.
    layers = [layer for layer in run.some_layers(3) if len(run.table("sequence_cdf", layer))]
    panels = figure.subplots(len(layers), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    edges = np.linspace(0.0, 1.0, _BARS + 1)
    for axes, layer in zip(panels, layers, strict=True):
        curve = run.table("sequence_cdf", layer)
        below = np.interp(edges, curve["x"], curve["cdf"])
        # The curve counts what is at or below its grid's points, and the least may be zero itself.
        axes.stairs(np.diff(np.append(0.0, below[1:])), edges, fill=True, color=BLUE)
        values = {r.measure: r.value for m, _ in _NUMBERS for r in run.readings(m) if r.layer == layer}
        words = [f"layer {run.name(layer)}", *(f"{word} {number(values[m])}" for m, word in _NUMBERS)]
        axes.text(0.97, 0.94, "\n".join(words), transform=axes.transAxes, ha="right", va="top", fontsize=SMALL)
        axes.set_ylabel("share")
    panels[-1].set_xlim(0, 1)
    panels[-1].set_xlabel("singular value / largest")
