"""Shares of the mean squared norm: the common mean, between token types and within them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import draw_curve, label_layers
from isotrope.drawing.style import AMBER, BLUE, ORANGE, SKY
from isotrope.errors import InputError
from isotrope.figures.record import YAMAGIWA, register_figure
from isotrope.figures.run_data import RunData, Vector
from isotrope.measures import get

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Measure, label and colour of each part of a bar, from below.
_SHARES = (
    ("mean_share", "M, common mean", BLUE),
    ("between_share", "V_B, between types", SKY),
    ("within_share", "V_W, within types", AMBER),
)
_WITHIN = "within_of_variance"
_NAMES = (*(measure for measure, _, _ in _SHARES), _WITHIN)


@register_figure(
    "variance-shares",
    page=True,
    shows=(
        "Left: shares of the mean squared norm Q that are the common mean, the variance between token types and the "
        "variance within them, in every layer, over all types. Right: the part of the variance that is within types."
    ),
    answers=f"{YAMAGIWA}, Figs. 5, 6, 18 and 20 over all types",
    measures=_NAMES,
)
def draw_variance_shares(run: RunData, figure: Figure) -> None:
    """Stacked bars that add up to one, and a curve."""
    _draw_shares(run, figure, {name: run.values(name) for name in _NAMES})


@register_figure(
    "variance-shares-window",
    page=True,
    shows=(
        "Left: shares of the mean squared norm Q that are the common mean, the variance between token types and the "
        "variance within them, in every layer, over types with 10 to 100,000 occurrences. Right: the part of the "
        "variance that is within types."
    ),
    answers=f"{YAMAGIWA}, Figs. 5, 6, 18 and 20",
    needs=("tokens", "statistics"),
)
def draw_variance_shares_window(run: RunData, figure: Figure) -> None:
    """The same over the types in the window, from the statistics of the run."""
    by_layer = [run.summary(layer).tokens for layer in run.layers]
    values = {
        name: np.array([np.nan if tokens is None else get(name)(tokens, variant="published") for tokens in by_layer])
        for name in _NAMES
    }
    if not np.isfinite(values["mean_share"]).any():
        raise InputError("no token type has 10 to 100,000 occurrences; scan more text.")
    _draw_shares(run, figure, values)


def _draw_shares(run: RunData, figure: Figure, values: dict[str, Vector]) -> None:
    left, right = figure.subplots(1, 2)
    bottom = np.zeros(len(run.layers))
    for measure, label, colour in _SHARES:
        left.bar(np.arange(len(bottom)), values[measure], 0.86, bottom=bottom, color=colour, label=label)
        bottom += values[measure]
    label_layers(left, run.layers, run.findings.layer_names)
    left.set_xlim(-0.6, len(run.layers) - 0.4)
    left.set_ylabel("share of Q")
    left.set_ylim(0, 1)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.0)
    draw_curve(right, values[_WITHIN].tolist(), colour=ORANGE)
    label_layers(right, run.layers, run.findings.layer_names)
    right.set_ylabel("V_W / V")
    right.set_ylim(0, 1)
