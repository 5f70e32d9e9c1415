"""The parts of the squared length of tokens, layer by layer: the common mean, the word, the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import draw_curve, label_layers
from isotrope.drawing.style import AMBER, BLUE, ORANGE, SKY
from isotrope.figures.record import YAMAGIWA, register_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_SHARES = (
    ("mean_share", "M, common mean", BLUE),
    ("between_share", "V_B, between types", SKY),
    ("within_share", "V_W, within types", AMBER),
)


@register_figure(
    "variance-shares",
    page=True,
    shows=(
        "Left: shares of the mean squared norm Q that are the common mean, the variance between token types and the "
        "variance within them, in every layer. Right: the part of the variance that is within types."
    ),
    answers=f"{YAMAGIWA}, Figs. 5, 6, 18 and 20",
    measures=(*(measure for measure, _, _ in _SHARES), "within_of_variance"),
)
def draw_variance_shares(run: RunData, figure: Figure) -> None:
    """Stacked bars that add up to one, and a curve."""
    left, right = figure.subplots(1, 2)
    bottom = np.zeros(len(run.layers))
    for measure, label, colour in _SHARES:
        values = run.values(measure)
        left.bar(np.arange(len(values)), values, 0.86, bottom=bottom, color=colour, label=label)
        bottom += values
    label_layers(left, run.layers, run.findings.layer_names)
    left.set_xlim(-0.6, len(run.layers) - 0.4)
    left.set_ylabel("share of Q")
    left.set_ylim(0, 1)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.0)
    draw_curve(right, run.values("within_of_variance").tolist(), colour=ORANGE)
    label_layers(right, run.layers, run.findings.layer_names)
    right.set_ylabel("V_W / V")
    right.set_ylim(0, 1)
