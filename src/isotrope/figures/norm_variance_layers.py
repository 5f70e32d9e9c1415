"""How even the norms of token types are, and how strict their trade-off with variance is, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.figures.record import YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_PANELS = (
    ("squared_norm_variation", "C.V. of Q"),
    ("variance_on_mean_slope", "slope of V on M"),
    ("variance_on_mean_r2", "R² of V on M"),
)


@figure(
    "norm-variance-layers",
    page=True,
    shows=(
        "Coefficient of variation of Q over token types, slope of V on M, and its R², in every layer, with 95 % "
        "intervals and what isotropic rows of the same types would give: 0, −1 and 1 are a full trade-off."
    ),
    answers=f"{YAMAGIWA}, Fig. 4",
    measures=tuple(measure for measure, _ in _PANELS),
    height=2.0,
)
def norm_variance_layers(run: RunData, figure: Figure) -> None:
    """Three panels over layers."""
    for axes, (measure, label) in zip(figure.subplots(1, 3), _PANELS, strict=True):
        run.findings.plot(measure, ax=axes)
        axes.set_ylabel(label)
    for axes in figure.axes[1:]:
        if (legend := axes.get_legend()) is not None:  # the first one says it for all
            legend.remove()
