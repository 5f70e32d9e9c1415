"""A cloud of points, one for each token type, with its least-squares line, slope and R²."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE, ORANGE, SMALL
from isotrope.figures.run_data import Vector
from isotrope.measures.token_window import regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def trend(axes: Axes, x: Vector, y: Vector, *, size: float = 3.0) -> None:
    """Draw points (k,) and their line; the numbers stand above. Points become pixels, so that files stay small."""
    line = regression(x, y)
    axes.scatter(x, y, s=size, color=BLUE, alpha=0.35, linewidth=0, rasterized=True)
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, y.mean() + line.slope * (ends - x.mean()), color=ORANGE)
    words = f"slope {line.slope:.3g}, R² {line.correlation**2:.2f}".replace("-", "−")
    axes.set_title(words, fontsize=SMALL)
