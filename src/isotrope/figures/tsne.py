"""The sampled rows of one layer on a plane that keeps neighbours together, as they are and after two repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE, LIGHTEST, SEQUENTIAL
from isotrope.drawing.tsne import tsne as placed
from isotrope.figures.record import YAN, figure
from isotrope.repairs import SoftDecay, Whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Rows that are drawn: their number decides how long it takes.
_ROWS = 1_000


@figure(
    "tsne",
    page=True,
    shows=(
        "t-SNE of sampled rows of one layer by cosine: as they are, whitened, and after SoftDecay with its default α; "
        "coloured by the rows' place in their sequence where they have one."
    ),
    answers=f"{YAN}, Figs. 4 and 7",
    needs=("statistics", "sample"),
    layer="last",
    height=2.5,
)
def tsne(run: RunData, figure: Figure) -> None:
    """Three scatters of the same rows."""
    summary, sample = run.summary(run.layer), run.sample(run.layer)
    rows = sample.values[:_ROWS].astype(np.float64)
    place = None if sample.rows.position is None else sample.rows.position[:_ROWS]
    spaces = {
        f"layer {run.name(run.layer)}": rows,
        "whitened": Whitening().fit_moments(summary.moments).transform(rows),
        "SoftDecay": SoftDecay(form="paper").fit_moments(summary.moments).transform(rows),
    }
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, LIGHTEST, 256)))
    panels = figure.subplots(1, len(spaces))
    for axes, (title, space) in zip(panels, spaces.items(), strict=True):
        x, y = placed(space, run.seed).T
        how = {"color": BLUE} if place is None else {"c": place, "cmap": colours}
        drawn = axes.scatter(x, y, s=2.5, linewidth=0, rasterized=True, **how)
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()  # its directions and distances mean nothing
    if place is not None:
        top = float(np.quantile(place, 0.95))
        for axes in panels:
            axes.collections[0].set_clim(0, top)
        bar = figure.colorbar(drawn, ax=panels, pad=0.01, label="place in the sequence")
        bar.outline.set_visible(False)
