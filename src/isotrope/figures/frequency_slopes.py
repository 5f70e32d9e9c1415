"""How norm and variance change with frequency, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.drawing.curve import curve, layer_axis
from isotrope.drawing.style import COLOURS, GREY
from isotrope.figures.record import YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_LINES = (
    ("log_squared_norm_on_frequency_slope", "log₁₀(1 + Q)", "o"),
    ("log_mean_norm_on_frequency_slope", "log₁₀(1 + M)", "s"),
    ("log_variance_on_frequency_slope", "log₁₀(1 + V)", "^"),
)


@figure(
    "frequency-slopes",
    shows=(
        "Slopes of log₁₀(1 + Q), log₁₀(1 + M) and log₁₀(1 + V) of token types on the logarithm of their frequency, in "
        "every layer, with 95 % intervals."
    ),
    answers=f"{YAMAGIWA}, Fig. 17",
    measures=tuple(measure for measure, _, _ in _LINES),
)
def frequency_slopes(run: RunData, figure: Figure) -> None:
    """Three curves over layers."""
    axes = figure.subplots()
    axes.axhline(0, color=GREY, linewidth=0.6)
    for (measure, label, marker), colour in zip(_LINES, COLOURS, strict=False):
        readings = run.readings(measure)
        low, high = [r.low for r in readings], [r.high for r in readings]
        curve(axes, [r.value for r in readings], low=low, high=high, label=label, colour=colour, marker=marker)
    layer_axis(axes, run.layers, run.findings.layer_names)
    axes.set_ylabel("slope on log₁₀ n")
    axes.legend()
