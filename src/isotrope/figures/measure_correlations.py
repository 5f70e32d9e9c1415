"""Which measures move together over the layers of one model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.style import DIVERGING, SMALL
from isotrope.errors import InputError
from isotrope.figures.record import MARBUT, register_figure
from isotrope.measures import get

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Layers below which a correlation over layers says nothing.
_FEWEST = 4

#: Measures whose names fit on a page.
_MOST = 48

#: Numbers that fit beside each other below the matrix.
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
    names, values = _changing(run)
    matrix = np.corrcoef(values)
    axes = figure.subplots()
    axes.grid(False)
    image = axes.imshow(matrix, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    figure.set_figheight(0.6 + _LINE * len(names))
    axes.set_yticks(range(len(names)), [f"{name}  {i}" for i, name in enumerate(names, start=1)])
    places = range(0, len(names), -(-len(names) // _NUMBERED))
    axes.set_xticks(places, [str(i + 1) for i in places])
    axes.set_xlabel("measure, by its number")
    axes.tick_params(length=0, labelsize=SMALL)
    bar = figure.colorbar(image, ax=axes, pad=0.02, shrink=0.5, label=f"correlation over {len(run.layers)} layers")
    bar.outline.set_visible(False)


def _changing(run: RunData) -> tuple[list[str], NDArray[np.float64]]:
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
