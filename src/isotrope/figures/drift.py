"""Whether the layers whose mean lies furthest from the origin are also the least isotropic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.style import GREY, SMALL, format_number
from isotrope.figures.record import GODEY, register_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


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
    axes.set_title("\n".join(lines), fontsize=SMALL, loc="left")
    add_layer_bar(figure, axes, [run.layer_name(layer) for layer in run.layers])
