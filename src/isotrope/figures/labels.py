"""Names beside points, none over another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.style import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Where a name may stand, in order of preference: direction from its point.
_PLACES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))

#: Distance of a name from its point, and how wide and high a letter is, in points.
_APART, _WIDE, _HIGH = 3.0, 0.62 * SMALL, 1.25 * SMALL

_ALIGN = {1: ("left", "bottom"), -1: ("right", "top"), 0: ("center", "center")}


def label_points(axes: Axes, points: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """Name points, (k, 2), each at the first place where it covers no other name; those without one stay unnamed.

    The axes must have their final limits. Returns the names that were written.
    """
    figure = axes.figure.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # settles where the axes are on the paper
    at = axes.transData.transform(points) * 72 / figure.dpi
    taken: list[tuple[float, float, float, float]] = []
    written = []
    for (x, y), place, name in zip(at, points, names, strict=True):
        wide = _WIDE * len(name)
        for right, up in _PLACES:
            left = x + right * _APART - wide * (1 - right) / 2
            low = y + up * _APART - _HIGH * (1 - up) / 2
            box = (left, left + wide, low, low + _HIGH)
            if all(box[1] < o[0] or o[1] < box[0] or box[3] < o[2] or o[3] < box[2] for o in taken):
                axes.annotate(
                    name,
                    (float(place[0]), float(place[1])),
                    xytext=(right * _APART, up * _APART),
                    textcoords="offset points",
                    fontsize=SMALL,
                    ha=_ALIGN[right][0],
                    va=_ALIGN[up][1],
                    zorder=4,
                )
                taken.append(box)
                written.append(name)
                break
    return written
