"""The distribution of singular values, of all rows and of the tokens of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.style import BLUE, SMALL_FONT_SIZE, format_number
from isotrope.figures.record import YAN, register_figure
from isotrope.figures.run_data import RunData, Vector
from isotrope.repairs import SoftDecay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Measures that a histogram states, with their labels.
_NUMBERS = (
    ("sequence_spectral_skewness", "skewness"),
    ("sequence_spectral_median", "median"),
    ("sequence_uniformity", "token uniformity"),
    ("cls_uniformity", "first-token uniformity"),
)

#: Bars of a histogram.
_BARS = 25


def _draw_distribution(axes: Axes, singular: Vector, colour: object) -> None:
    """Draw the share of singular values, (d,), at or below each share of the largest; NaNs are left out."""
    known = np.sort(singular[np.isfinite(singular)])
    share = np.arange(1, len(known) + 1) / len(known)
    axes.step(np.append(0.0, known / known[-1]), np.append(0.0, share), where="post", color=colour, linewidth=1.1)


def _label_shares(axes: Axes) -> None:
    """Label the axes of a cumulative curve of normalised singular values."""
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("singular value / largest")
    axes.set_ylabel("share of singular values")


@register_figure(
    "spectra",
    shows=(
        "Cumulative distribution of the singular values of all rows, divided by the largest, for every layer: the "
        "steeper at the left, the fewer directions carry the rows."
    ),
    answers=f"{YAN}, Figs. 1 and 8, for all rows as one matrix",
    needs=("spectra",),
)
def draw_spectra(run: RunData, figure: Figure) -> None:
    """One cumulative curve for each layer."""
    axes = figure.subplots()
    for layer, colour in zip(run.layers, layer_colours(len(run.layers)), strict=True):
        _draw_distribution(axes, run.table("spectra", layer)["singular_value"].to_numpy(), colour)
    _label_shares(axes)
    add_layer_bar(figure, axes, [run.layer_name(layer) for layer in run.layers])


@register_figure(
    "softdecay-spectra",
    page=True,
    shows=(
        "Cumulative distribution of the singular values of all rows, divided by the largest, before (left) and after "
        "(right) SoftDecay with its default α in the form of the paper, for every layer."
    ),
    answers=f"{YAN}, Figs. 3 and 5 and 9 to 13, for all rows as one matrix",
    needs=("statistics",),
)
def draw_softdecay_spectra(run: RunData, figure: Figure) -> None:
    """Two panels of cumulative curves, exact by the moments."""
    before, after = figure.subplots(1, 2, sharey=True)
    repair = SoftDecay(form="paper")
    for layer, colour in zip(run.layers, layer_colours(len(run.layers)), strict=True):
        moments = run.summary(layer).moments
        _draw_distribution(before, moments.singular_values, colour)
        affine = repair.fit_moments(moments).affine_
        _draw_distribution(after, affine.push(moments).singular_values, colour)
    before.set_title("as they are")
    after.set_title(f"SoftDecay, α = −{-repair.alpha:g}")
    for axes in (before, after):
        _label_shares(axes)
    after.set_ylabel("")
    add_layer_bar(figure, (before, after), [run.layer_name(layer) for layer in run.layers])


@register_figure(
    "sequence-spectra",
    shows=(
        "Cumulative distribution of the singular values of each sequence's token matrix, divided by its largest, "
        "averaged over sequences, for every layer: the further up and left, the more directions have vanished."
    ),
    answers=f"{YAN}, Figs. 1 and 8 and the upper rows of 9 to 13",
    needs=("sequence_cdf",),
)
def draw_sequence_spectra(run: RunData, figure: Figure) -> None:
    """One cumulative curve for each layer."""
    axes = figure.subplots()
    layers = [layer for layer in run.layers if len(run.table("sequence_cdf", layer))]
    for layer, colour in zip(layers, layer_colours(len(layers)), strict=True):
        table = run.table("sequence_cdf", layer)
        axes.plot(table["x"], table["cdf"], color=colour, linewidth=1.1)
    _label_shares(axes)
    add_layer_bar(figure, axes, [run.layer_name(layer) for layer in layers])


@register_figure(
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
def draw_spectrum_histograms(run: RunData, figure: Figure) -> None:
    """One histogram above another, from the differences of the cumulative curves."""
    # A layer with one row a sequence, as at the end of a convolution, has no spectra of sequences.
    layers = [layer for layer in run.select_layers(3) if len(run.table("sequence_cdf", layer))]
    panels = figure.subplots(len(layers), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    edges = np.linspace(0.0, 1.0, _BARS + 1)
    for axes, layer in zip(panels, layers, strict=True):
        table = run.table("sequence_cdf", layer)
        below = np.interp(edges, table["x"], table["cdf"])
        # The curve counts what is at or below its grid's points, and the least may be zero itself.
        axes.stairs(np.diff(np.append(0.0, below[1:])), edges, fill=True, color=BLUE)
        values = {r.measure: r.value for m, _ in _NUMBERS for r in run.readings(m) if r.layer == layer}
        words = [f"layer {run.layer_name(layer)}", *(f"{word} {format_number(values[m])}" for m, word in _NUMBERS)]
        axes.text(
            0.97, 0.94, "\n".join(words), transform=axes.transAxes, ha="right", va="top", fontsize=SMALL_FONT_SIZE
        )
        axes.set_ylabel("share")
    panels[-1].set_xlim(0, 1)
    panels[-1].set_xlabel("singular value / largest")
