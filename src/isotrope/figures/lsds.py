"""How much two repairs move rows against their neighbours, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.curve import layer_axis
from isotrope.drawing.style import AMBER, BLUE
from isotrope.figures.pca import ROWS
from isotrope.figures.record import YAN, figure
from isotrope.measures import get
from isotrope.repairs import SoftDecay, Whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "lsds",
    shows=(
        "Local structure discrepancy of sampled rows after whitening and after SoftDecay with its default α, in every "
        "layer: the smaller, the better each row's neighbourhood is kept."
    ),
    answers=f"{YAN}, Fig. 6",
    needs=("statistics", "sample"),
)
def lsds(run: RunData, figure: Figure) -> None:
    """Two bars for each layer, from the same sampled rows."""
    axes = figure.subplots()
    discrepancy = get("lsds")
    at = np.arange(len(run.layers))
    for repair, label, colour, side in (
        (Whitening(), "whitening", BLUE, -0.2),
        (SoftDecay(form="paper"), "SoftDecay", AMBER, 0.2),
    ):
        values = []
        for layer in run.layers:
            rows = run.sample(layer).values[:ROWS].astype(np.float64)
            values.append(discrepancy(rows, repair.fit_moments(run.summary(layer).moments).transform(rows)))
        axes.bar(at + side, values, 0.4, color=colour, label=label)
    layer_axis(axes, run.layers, run.findings.layer_names)
    axes.set_xlim(-0.6, len(at) - 0.4)
    axes.set_ylabel("LSDS")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
