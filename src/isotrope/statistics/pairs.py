"""How close all pairs of rows are together: sums of a Gaussian kernel over pairs, by groups of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

#: Rows compared with all others at once.
_ROWS = 256


def log_kernel_sums(rows: Matrix, group: NDArray[np.int64], t: float) -> Matrix:
    """log Σ exp(−‖x_i − x_j‖²/t) over i in one group and j ≠ i in another, rows (n, d) -> (groups, groups).

    >>> log_kernel_sums(np.array([[0.0], [1.0]]), np.array([0, 1]), 1.0).tolist()
    [[-inf, -1.0], [-1.0, -inf]]
    """
    centred = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    member = np.eye(int(group.max(initial=0)) + 1)[group]
    sums, top = np.zeros((member.shape[1],) * 2), -np.inf
    for start in range(0, len(rows), _ROWS):
        here = slice(start, start + _ROWS)
        # Each pair once: the rows here among themselves and with those that follow.
        away = centred[here] @ centred[start:].T
        away *= -2.0
        away += squares[start:]
        away += squares[here, None]
        np.maximum(away, 0.0, out=away)
        away /= -t
        np.fill_diagonal(away, -np.inf)
        # Relative to the closest pair so far, so that nothing underflows however far the rows are apart.
        peak = max(top, float(away.max()))
        sums *= np.exp(top - peak) if np.isfinite(top) else 0.0
        top = peak
        away -= top
        np.exp(away, out=away)
        size = away.shape[0]
        sums += member[here].T @ (away[:, :size] @ member[here])
        others = member[here].T @ (away[:, size:] @ member[start + size :])
        sums += others + others.T
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + top)
