"""How long the rows are, and what of that is mean and what is variance, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.curve import curve, layer_axis
from isotrope.drawing.style import COLOURS
from isotrope.figures.record import YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_LINES = (
    ("mean_squared_norm", "Q, mean squared norm", "o"),
    ("mean_norm_squared", "M, squared norm of the mean", "s"),
    ("variance", "V, variance", "^"),
    ("within_variance", "V_W, within types", "v"),
    ("between_variance", "V_B, between types", "D"),
)

#: The largest over the smallest value from which on a plain axis would flatten the small ones.
_WIDE = 50.0


@figure(
    "squared-norms",
    shows=(
        "Mean squared norm Q, squared norm of the mean M and variance V of all rows in every layer and, where rows are "
        "tokens, the variance within and between token types."
    ),
    answers=f"{YAMAGIWA}, Figs. 19 and 20",
    measures=tuple(measure for measure, _, _ in _LINES[:3]),
    height=2.8,
)
def squared_norms(run: RunData, figure: Figure) -> None:
    """Curves over layers, on an axis of powers where they differ widely."""
    axes = figure.subplots()
    seen = []
    for (measure, label, marker), colour in zip(_LINES, COLOURS, strict=False):
        values = run.values(measure)
        if np.isfinite(values).any():
            curve(axes, values.tolist(), label=label, colour=colour, marker=marker)
            seen.append(values[np.isfinite(values)])
    known = np.concatenate(seen)
    known = known[known > 0]
    if len(known) and known.max() > _WIDE * known.min():
        axes.set_yscale("log", nonpositive="mask")  # where types do not vary there is no point
        axes.yaxis.set_major_formatter("{x:g}")
    layer_axis(axes, run.layers, run.findings.layer_names)
    axes.set_ylabel("squared length")
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, columnspacing=1.0)
