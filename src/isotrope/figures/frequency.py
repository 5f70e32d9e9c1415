"""Norm, norm of the mean and variance of token types against how frequent they are, in one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.robust_limits import robust_range
from isotrope.figures.record import YAMAGIWA, figure
from isotrope.figures.trend import trend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "frequency",
    page=True,
    shows=(
        "Q, M and V of each token type against the logarithm of its frequency, in one layer, with least-squares "
        "lines; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Fig. 7",
    needs=("tokens",),
    layer="middle",
)
def frequency(run: RunData, figure: Figure) -> None:
    """Three scatters over token types."""
    types = run.types(run.layer)
    panels = figure.subplots(1, 3, sharey=True)
    ranges = [robust_range(values) for values in (types.q, types.m, types.v)]
    shared = min(low for low, _ in ranges), max(high for _, high in ranges)
    for axes, values, letter in zip(panels, (types.q, types.m, types.v), "QMV", strict=True):
        trend(axes, np.log10(types.n), values, names=types.token, letters=("log₁₀ n", letter), y_range=shared)
        axes.set_xlabel("log₁₀ n")
        axes.set_ylabel(f"{letter} (layer {run.name(run.layer)})")
