"""Sampled rows as they are, whitened, and after SoftDecay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import label_layers
from isotrope.drawing.projections import project_tsne
from isotrope.drawing.style import AMBER, BLUE, LIGHTEST, SEQUENTIAL
from isotrope.figures.record import YAN, register_figure
from isotrope.measures import get
from isotrope.repairs import SoftDecay, Whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: The most rows of each figure: their number decides how long it takes.
_TSNE_ROWS, _LSDS_ROWS = 1_000, 2_000


@register_figure(
    "tsne",
    page=True,
    shows=(
        "t-SNE of sampled rows of one layer by cosine: as they are, whitened, and after SoftDecay with its default α; "
        "coloured by the rows' position in their sequence where they have one."
    ),
    answers=f"{YAN}, Figs. 4 and 7",
    needs=("statistics", "sample"),
    layer="last",
    height=2.5,
)
def draw_tsne(run: RunData, figure: Figure) -> None:
    """Three scatters of the same rows."""
    summary, sample = run.summary(run.layer), run.sample(run.layer)
    rows = sample.values[:_TSNE_ROWS].astype(np.float64)
    position = None if sample.rows.position is None else sample.rows.position[:_TSNE_ROWS]
    spaces = {
        f"layer {run.layer_name(run.layer)}": rows,
        "whitened": Whitening().fit_moments(summary.moments).transform(rows),
        "SoftDecay": SoftDecay(form="paper").fit_moments(summary.moments).transform(rows),
    }
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, LIGHTEST, 256)))
    panels = figure.subplots(1, len(spaces))
    for axes, (title, space) in zip(panels, spaces.items(), strict=True):
        x, y = project_tsne(space, run.seed).T
        how = {"color": BLUE} if position is None else {"c": position, "cmap": colours}
        points = axes.scatter(x, y, s=2.5, linewidth=0, rasterized=True, **how)
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()  # its directions and distances mean nothing
    if position is not None:
        top = float(np.quantile(position, 0.95))
        for axes in panels:
            axes.collections[0].set_clim(0, top)
        bar = figure.colorbar(points, ax=panels, pad=0.01, label="position in the sequence")
        bar.outline.set_visible(False)


@register_figure(
    "lsds",
    shows=(
        "Local structure discrepancy of sampled rows after whitening and after SoftDecay with its default α, in every "
        "layer: the smaller, the better each row's neighbourhood is kept."
    ),
    answers=f"{YAN}, Fig. 6",
    needs=("statistics", "sample"),
)
def draw_lsds(run: RunData, figure: Figure) -> None:
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
            rows = run.sample(layer).values[:_LSDS_ROWS].astype(np.float64)
            values.append(discrepancy(rows, repair.fit_moments(run.summary(layer).moments).transform(rows)))
        axes.bar(at + side, values, 0.4, color=colour, label=label)
    label_layers(axes, run.layers, run.findings.layer_names)
    axes.set_xlim(-0.6, len(at) - 0.4)
    axes.set_ylabel("LSDS")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
