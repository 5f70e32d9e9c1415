"""The trade-off between norm and variance, with some token types by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.robust_limits import is_inside, limit_axes, robust_range, write_note
from isotrope.drawing.style import BLUE, GREY, readable
from isotrope.figures.chosen_tokens import chosen_tokens
from isotrope.figures.labels import label_points
from isotrope.figures.record import YAMAGIWA, figure
from isotrope.measures.norm_variance import regression

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "norm-variance-tokens",
    page=True,
    shows=(
        "Variance against the squared norm of the mean for token types chosen over all frequencies, by name, among all "
        "others, with the least-squares line of all."
    ),
    answers=f"{YAMAGIWA}, Fig. 8",
    needs=("tokens",),
    layer="middle",
    height=4.6,
)
def norm_variance_tokens(run: RunData, figure: Figure) -> None:
    """A pale scatter of all types, and names on the chosen ones."""
    axes = figure.subplots()
    types = run.types(run.layer)
    line = regression(types.m, types.v)
    axes.scatter(types.m, types.v, s=5, color=GREY, alpha=0.25, linewidth=0, rasterized=True)
    ends = np.array([types.m.min(), types.m.max()])
    axes.plot(ends, types.v.mean() + line.slope * (ends - types.m.mean()), color=GREY)
    chosen = chosen_tokens(types, run.seed)
    axes.scatter(types.m[chosen], types.v[chosen], s=12, color=BLUE, zorder=3)
    note = limit_axes(axes, types.m, types.v, types.token, letters=("M", "V"), unit="types")
    write_note(axes, note)
    axes.set_xlabel(f"M, squared norm of the mean (layer {run.name(run.layer)})")
    axes.set_ylabel("V, variance")
    if note:
        near = [is_inside(values, robust_range(values)) for values in (types.m, types.v)]
        chosen = chosen[(near[0] & near[1])[chosen]]
    points = np.column_stack([types.m[chosen], types.v[chosen]])
    label_points(axes, points, [readable(types.token[i]) for i in chosen])
