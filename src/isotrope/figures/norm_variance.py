"""The trade-off between the norm of a token type's mean and its variance, in one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.figures.record import YAMAGIWA, figure
from isotrope.figures.trend import trend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


@figure(
    "norm-variance",
    shows=(
        "Variance V of each token type's embeddings against the squared norm M of their mean, in one layer, with the "
        "least-squares line; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Fig. 2",
    needs=("tokens",),
    layer="middle",
    height=2.5,
)
def norm_variance(run: RunData, figure: Figure) -> None:
    """A scatter over token types."""
    axes = figure.subplots()
    types = run.types(run.layer)
    trend(axes, types.m, types.v, size=5, names=types.token, letters=("M", "V"))
    axes.set_xlabel(f"M, squared norm of the mean (layer {run.name(run.layer)})")
    axes.set_ylabel("V, variance")
