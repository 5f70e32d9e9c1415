"""A cloud of points, one for each token type, with its least-squares line, slope and R²."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.robust_limits import limit_axes, robust_range, write_note
from isotrope.drawing.style import BLUE, ORANGE, SMALL
from isotrope.figures.run_data import Vector
from isotrope.measures.norm_variance import regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def trend(
    axes: Axes,
    x: Vector,
    y: Vector,
    *,
    size: float = 3.0,
    names: Sequence[str] | None = None,
    letters: tuple[str, str] = ("x", "y"),
    y_range: tuple[float, float] | None = None,
) -> None:
    """Draw points (k,) and the line through all of them; the numbers stand above, with what lies outside the limits.

    Points become pixels, so that files stay small. names, letters: see `isotrope.drawing.robust_limits.limit_axes`.
    y_range: that several axes share.
    """
    line = regression(x, y)
    axes.scatter(x, y, s=size, color=BLUE, alpha=0.35, linewidth=0, rasterized=True)
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, y.mean() + line.slope * (ends - x.mean()), color=ORANGE)
    words = f"slope {line.slope:.3g}, R² {line.correlation**2:.2f}".replace("-", "−")
    ranges = None if y_range is None else (robust_range(x), y_range)
    note = limit_axes(axes, x, y, names, letters=letters, unit="types", ranges=ranges)
    axes.set_title(f"{words}, of all" if note else words, fontsize=SMALL)
    write_note(axes, note)
