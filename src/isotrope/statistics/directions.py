"""Mean and scatter of the directions of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics.usable_rows import UsableRows

Vector = NDArray[np.float64]

#: Scatter of one unit row below which 1 − ‖mean‖² would lose digits that the rows have.
_NEARLY_PARALLEL = 1e-2

#: Unit rows held at once: few enough to stay in the cache.
_ROWS = 256


def unit_moments(rows: UsableRows) -> tuple[Vector, float]:
    """Mean of u = x/‖x‖, (d,), and Σ‖u − mean‖², both in float64 whatever the type of the rows.

    Unit rows are summed directly. Summing them about the mean row instead would lose every row that is far shorter than
    the mean row. Nearly parallel unit rows are centred before they are squared, so that their small scatter keeps its
    digits.

    >>> from isotrope.statistics.usable_rows import prepare_rows
    >>> unit_moments(prepare_rows(np.array([[3.0, 0.0], [0.0, 1e-20]])))
    (array([0.5, 0.5]), 1.0)
    """
    n, inverse = len(rows), 1.0 / rows.norms
    # einsum widens a few rows at a time, and uses no threads, which would compete with the large products.
    mean = np.einsum("i,ij->j", inverse, rows.values) / n
    scatter = n * (1.0 - float(mean @ mean))
    if scatter > _NEARLY_PARALLEL * n:
        return mean, scatter
    rest, squares = np.zeros_like(mean), 0.0
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        away = rows.values[part] * inverse[part, None] - mean
        rest += away.sum(axis=0)
        squares += float(np.vdot(away, away))
    rest /= n
    return mean + rest, max(0.0, squares - n * float(rest @ rest))
