"""One number for each layer, as a line with its interval and with what isotropic rows would give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isotrope.drawing.style import BLUE, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names of layers that fit beside each other on an axis.
_NAMED = 13


def curve(
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
    """Draw values over layers, (k,): a gap where there is none, a band where there is an interval, the null dashed."""
    at = range(len(values))
    if any(map(math.isfinite, null)):
        axes.plot(at, null, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, label="isotropic")
    if low and high:
        axes.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
    if len(values) == 1 and low and high:  # a band needs two layers
        axes.plot([0, 0], [low[0], high[0]], color=colour, alpha=0.25, linewidth=6, solid_capstyle="butt")
    axes.plot(at, values, color=colour, marker=marker, label=label)


def layer_axis(axes: Axes, layers: Sequence[int | str], names: dict[str, str] | None = None) -> None:
    """Name the layers on the horizontal axis, every few of them where they are many."""
    every = -(-len(layers) // _NAMED)
    places = list(range(0, len(layers), every))
    shown = [(names or {}).get(str(layers[i]), str(layers[i])) for i in places]
    turned = max(map(len, shown), default=0) > 3
    axes.set_xticks(places, shown, rotation=45 if turned else 0, ha="right" if turned else "center")
    axes.set_xlim(-0.3, max(len(layers) - 0.7, 0.3))
    axes.set_xlabel("layer")
