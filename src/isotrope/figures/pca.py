"""The sampled rows of a few layers on their two strongest directions, with the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.projections import project_uncentred
from isotrope.drawing.robust_limits import limit_axes, write_note
from isotrope.drawing.style import BLACK, BLUE
from isotrope.figures.record import register_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: The most rows of one panel.
_ROWS = 2_000


@register_figure(
    "pca",
    page=True,
    shows=(
        "Sampled rows of the first, middle and last layer on the two strongest directions of their uncentred cloud, "
        "with the origin (×): a narrow cone lies to one side of it."
    ),
    answers="Gao et al. 2019 (representation degeneration), Fig. 1",
    needs=("sample",),
    height=2.4,
)
def draw_pca(run: RunData, figure: Figure) -> None:
    """One scatter for each of three layers, each with its own scale."""
    layers = run.select_layers(3)
    for axes, layer in zip(figure.subplots(1, len(layers), squeeze=False)[0], layers, strict=True):
        x, y = project_uncentred(run.sample(layer).values[:_ROWS].astype(np.float64)).T
        axes.scatter(x, y, s=2, color=BLUE, alpha=0.4, linewidth=0, rasterized=True)
        axes.plot(0, 0, marker="x", color=BLACK, markersize=6, markeredgewidth=1.5)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(f"layer {run.layer_name(layer)}")
        write_note(axes, limit_axes(axes, x, y, unit="rows", equal=True))
        axes.set_xlabel("first direction")
        axes.locator_params(nbins=5)
    figure.axes[0].set_ylabel("second direction")
