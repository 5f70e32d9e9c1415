"""Figures of measures over the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.drawing.layers import draw_curve, label_layers
from isotrope.drawing.style import COLOURS, GREY
from isotrope.figures.record import YAMAGIWA, YAN, FigureRecord, register_figure
from isotrope.figures.run_data import RunData
from isotrope.measures import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Curves of each figure: measure, label and marker.
_COSINES = (
    ("sequence_uniformity", "tokens of a sequence", "o"),
    ("cls_uniformity", "first token to the others", "s"),
    ("mean_cosine", "all tokens", "^"),
)
_SLOPES = (
    ("log_squared_norm_on_frequency_slope", "log₁₀(1 + Q)", "o"),
    ("log_mean_norm_on_frequency_slope", "log₁₀(1 + M)", "s"),
    ("log_variance_on_frequency_slope", "log₁₀(1 + V)", "^"),
)
_NORMS = (
    ("mean_squared_norm", "Q, mean squared norm", "o"),
    ("mean_norm_squared", "M, squared norm of the mean", "s"),
    ("variance", "V, variance", "^"),
    ("within_variance", "V_W, within types", "v"),
    ("between_variance", "V_B, between types", "D"),
)
_TRADE_OFF = (
    ("squared_norm_variation", "C.V. of Q"),
    ("variance_on_mean_slope", "slope of V on M"),
    ("variance_on_mean_r2", "R² of V on M"),
)

#: The largest over the smallest value from which on a linear axis would flatten the small ones.
_WIDE = 50.0


def _draw_measures(run: RunData, axes: Axes, lines: Sequence[tuple[str, str, str]]) -> None:
    """Draw measures over the layers with their intervals."""
    for (measure, label, marker), colour in zip(lines, COLOURS, strict=False):
        readings = run.readings(measure)
        low, high = [r.low for r in readings], [r.high for r in readings]
        draw_curve(axes, [r.value for r in readings], low=low, high=high, label=label, colour=colour, marker=marker)
    label_layers(axes, run.layers, run.findings.layer_names)


def _register_curves(
    name: str, lines: Sequence[tuple[str, str, str]], label: str, *, zero: bool = False, **facts: Any
) -> None:
    """Register a figure of measures over the layers.

    Args:
        name: of the figure.
        lines: measure, label and marker of each curve.
        label: of the vertical axis.
        zero: whether the axis has a line at zero.
        facts: further fields of `FigureRecord`.
    """

    @register_figure(name, measures=tuple(measure for measure, _, _ in lines), **facts)
    def draw(run: RunData, figure: Figure) -> None:
        axes = figure.subplots()
        if zero:
            axes.axhline(0, color=GREY, linewidth=0.6)
        _draw_measures(run, axes, lines)
        axes.set_ylabel(label)
        axes.legend()


_register_curves(
    "uniformity",
    _COSINES,
    "mean cosine",
    shows=(
        "Mean cosine between the tokens of a sequence, between its first token and the others, and between all tokens "
        "of the corpus, in every layer, with 95 % intervals."
    ),
    answers=f"{YAN}, Fig. 2, for every layer",
)
_register_curves(
    "frequency-slopes",
    _SLOPES,
    "slope on log₁₀ n",
    zero=True,
    shows=(
        "Slopes of log₁₀(1 + Q), log₁₀(1 + M) and log₁₀(1 + V) of token types on the logarithm of their frequency, in "
        "every layer, with 95 % intervals."
    ),
    answers=f"{YAMAGIWA}, Fig. 17",
)


@register_figure(
    "squared-norms",
    shows=(
        "Mean squared norm Q, squared norm of the mean M and variance V of all rows in every layer and, where rows are "
        "tokens, the variance within and between token types."
    ),
    answers=f"{YAMAGIWA}, Figs. 19 and 20",
    measures=tuple(measure for measure, _, _ in _NORMS[:3]),
    height=2.8,
)
def draw_squared_norms(run: RunData, figure: Figure) -> None:
    """Curves over layers, on an axis of powers where they differ widely."""
    axes = figure.subplots()
    seen = []
    for (measure, label, marker), colour in zip(_NORMS, COLOURS, strict=False):
        values = run.values(measure)
        if np.isfinite(values).any():
            draw_curve(axes, values.tolist(), label=label, colour=colour, marker=marker)
            seen.append(values[np.isfinite(values)])
    known = np.concatenate(seen)
    known = known[known > 0]
    if len(known) and known.max() > _WIDE * known.min():
        axes.set_yscale("log", nonpositive="mask")  # where types do not vary there is no point
        axes.yaxis.set_major_formatter("{x:g}")
    label_layers(axes, run.layers, run.findings.layer_names)
    axes.set_ylabel("squared length")
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, columnspacing=1.0)


@register_figure(
    "norm-variance-layers",
    page=True,
    shows=(
        "Coefficient of variation of Q over token types, slope of V on M, and its R², in every layer, with 95 % "
        "intervals and what isotropic rows of the same types would give: 0, −1 and 1 are a full trade-off."
    ),
    answers=f"{YAMAGIWA}, Fig. 4",
    measures=tuple(measure for measure, _ in _TRADE_OFF),
    height=2.0,
)
def draw_norm_variance_layers(run: RunData, figure: Figure) -> None:
    """Three panels over layers."""
    for axes, (measure, label) in zip(figure.subplots(1, 3), _TRADE_OFF, strict=True):
        run.findings.plot(measure, ax=axes)
        axes.set_ylabel(label)
    for axes in figure.axes[1:]:
        if (legend := axes.get_legend()) is not None:  # the first one says it for all
            legend.remove()


def make_measure_figure(m: Measure) -> FigureRecord:
    """The figure of any measure over the layers; Figs. 1 to 4 of Godey et al. 2023 with the mean cosine."""

    def draw(run: RunData, figure: Figure) -> None:
        axes = run.findings.plot(m.name, ax=figure.subplots())
        axes.set_ylabel(m.title)

    return FigureRecord(
        name=m.name,
        shows=f"{m.title} in each layer, its 95 % interval, and what isotropic rows would give. {m.says}",
        answers=m.paper,
        draw=draw,
        measures=(m.name,),
    )
