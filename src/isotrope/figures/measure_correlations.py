"""Which measures move together over the layers of one model: all of them, and drift with mean cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.style import DIVERGING, GREY, SMALL_FONT_SIZE, format_number
from isotrope.errors import InputError
from isotrope.figures.record import GODEY, MARBUT, register_figure
from isotrope.figures.run_data import RunData
from isotrope.measures import get

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Layers below which a correlation over layers says nothing.
_FEWEST = 4

#: Measures whose names fit on a page.
_MOST = 48

#: Numbers that fit below the matrix.
_NUMBERED = 24

#: Height of one of the matrix's lines, in inches.
_LINE = 0.14


@register_figure(
    "measure-correlations",
    page=True,
    shows=(
        "Pearson's correlation between the measures of the run over its layers (the paper has it over models): those "
        "of which one way is healthier and those of quantized cells, where they have a value in every layer and change."
    ),
    answers=f"{MARBUT}, Fig. 8",
    height=6.9,
)
def draw_measure_correlations(run: RunData, figure: Figure) -> None:
    """A matrix of colours, violet for opposite, brown for alike; columns go by the numbers of the rows."""
    names, values = _select_measures(run)
    figure.set_figheight(0.6 + _LINE * len(names))
    label, step = f"correlation over {len(run.layers)} layers", -(-len(names) // _NUMBERED)
    axes = draw_matrix(figure, np.asarray(np.corrcoef(values)), names, label, shrink=0.5, step=step)
    axes.set_xlabel("measure, by its number")


@register_figure(
    "drift",
    shows=(
        "Mean cosine against the norm of the mean, one point for each layer, with Spearman's and Pearson's correlation "
        "and their permutation p; layers are not exchangeable, so p describes and proves nothing."
    ),
    answers=f"{GODEY}, Figs. 5 and 11, for one model",
    measures=(
        "drift_norm",
        "mean_cosine",
        "drift_correlation_spearman",
        "drift_correlation_spearman_p",
        "drift_correlation_pearson",
        "drift_correlation_pearson_p",
    ),
)
def draw_drift(run: RunData, figure: Figure) -> None:
    """A scatter of layers, joined in their order."""
    axes = figure.subplots()
    x, y = run.values("drift_norm"), run.values("mean_cosine")
    axes.plot(x, y, color=GREY, linewidth=0.6)
    axes.scatter(x, y, c=layer_colours(len(x)), s=22, zorder=3)
    if np.nanmax(x) > 50 * np.nanmin(x) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("norm of the mean")
    axes.set_ylabel("mean cosine")
    lines = []
    for letter, kind in (("ρ", "spearman"), ("r", "pearson")):
        value, p = (run.findings.get(f"drift_correlation_{kind}{end}", None).value for end in ("", "_p"))
        lines.append(f"{letter} = {format_number(value)}, p = {p:.2g}")
    axes.set_title("\n".join(lines), fontsize=SMALL_FONT_SIZE, loc="left")
    add_layer_bar(figure, axes, [run.layer_name(layer) for layer in run.layers])


def draw_matrix(
    figure: Figure, matrix: NDArray[np.float64], names: Sequence[str], label: str, *, shrink: float, step: int = 1
) -> Axes:
    """Draw a matrix of correlations, with numbered names for its rows and numbers for its columns.

    Args:
        figure: an empty figure.
        matrix: (k, k), from -1 to 1.
        names: of the rows.
        label: of the colour bar.
        shrink: the height of the colour bar as a share of that of the matrix.
        step: number only each so many-th column.
    """
    axes = figure.subplots()
    axes.grid(False)
    image = axes.imshow(matrix, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    axes.set_yticks(range(len(names)), [f"{name}  {i}" for i, name in enumerate(names, start=1)])
    ticks = range(0, len(names), step)
    axes.set_xticks(ticks, [str(i + 1) for i in ticks])
    axes.tick_params(length=0, labelsize=SMALL_FONT_SIZE)
    figure.colorbar(image, ax=axes, pad=0.02, shrink=shrink, label=label).outline.set_visible(False)
    return axes


def _select_measures(run: RunData) -> tuple[list[str], NDArray[np.float64]]:
    """The measures that the figure shows, and their values (k, layers)."""
    if len(run.layers) < _FEWEST:
        raise InputError(
            f"the run has {len(run.layers)} layers, expected at least {_FEWEST}: a correlation over fewer says nothing."
        )
    found: dict[str, NDArray[np.float64]] = {}
    for name in dict.fromkeys(r.measure for r in run.findings.readings if r.layer is not None):
        values = run.values(name)
        m = get(name)
        changes = np.isfinite(values).all() and np.ptp(values) > 1e-12 * np.abs(values).max()
        if changes and (m.better or m.needs == "cells"):
            found[name] = values
    if len(found) < 2:
        raise InputError("the run has fewer than two measures that change from layer to layer; scan with more.")
    names = list(found)[:_MOST]
    return names, np.array([found[name] for name in names])
