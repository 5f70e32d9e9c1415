"""Numbers over layers: curves, the axis that names the layers, and a colour for each layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotrope.drawing.style import BLUE, GREY, LIGHTEST, SEQUENTIAL, SMALL_FONT_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Names of layers that fit along an axis, and along a colour bar.
_ON_AXIS, _ON_BAR = 13, 7


def draw_curve(
    axes: Axes,
    values: Sequence[float],
    *,
    low: Sequence[float] = (),
    high: Sequence[float] = (),
    null: Sequence[float] = (),
    label: str | None = None,
    colour: str = BLUE,
    marker: str = "o",
) -> None:
    """Draw values over layers, (k,), with a gap where a value is NaN.

    Args:
        axes: where to draw.
        values: one number for each layer.
        low: lower ends of the intervals, drawn as a band.
        high: upper ends of the intervals.
        null: what isotropic rows would give, drawn dashed.
        label: in the legend.
        colour: of the curve.
        marker: of the points.
    """
    at = range(len(values))
    if any(map(math.isfinite, null)):
        axes.plot(at, null, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, label="isotropic")
    if low and high:
        axes.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
    if len(values) == 1 and low and high:  # a band needs two layers
        axes.plot([0, 0], [low[0], high[0]], color=colour, alpha=0.25, linewidth=6, solid_capstyle="butt")
    axes.plot(at, values, color=colour, marker=marker, label=label)


def label_layers(axes: Axes, layers: Sequence[int | str], names: dict[str, str] | None = None) -> None:
    """Name the layers on the horizontal axis, or every few of them where there are many."""
    ticks = _select_evenly(len(layers), _ON_AXIS)
    shown = [(names or {}).get(str(layers[i]), str(layers[i])) for i in ticks]
    rotated = max(map(len, shown), default=0) > 3
    axes.set_xticks(ticks, shown, rotation=45 if rotated else 0, ha="right" if rotated else "center")
    axes.set_xlim(-0.3, max(len(layers) - 0.7, 0.3))
    axes.set_xlabel("layer")


def layer_colours(count: int) -> list[Any]:
    """One colour for each layer, from dark to light."""
    from matplotlib import colormaps

    return [colormaps[SEQUENTIAL](LIGHTEST * i / max(count - 1, 1)) for i in range(count)]


def add_layer_bar(figure: Figure, axes: Any, names: Sequence[str]) -> None:
    """Add a bar with the colours of the layers, unless there is only one layer."""
    if len(names) < 2:
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    edges = [i - 0.5 for i in range(len(names) + 1)]
    colours = ListedColormap(layer_colours(len(names)))
    ticks = _select_evenly(len(names), _ON_BAR)
    bar = figure.colorbar(ScalarMappable(BoundaryNorm(edges, len(names)), colours), ax=axes, ticks=ticks, pad=0.02)
    bar.ax.set_yticklabels([names[i] for i in ticks])
    bar.ax.tick_params(length=0, labelsize=SMALL_FONT_SIZE)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label("layer")


def _select_evenly(count: int, most: int) -> list[int]:
    """At most so many numbers below `count`, evenly spaced from 0."""
    return list(range(0, count, -(-count // most) or 1))
