"""Sums over the rows of each token type, by differences, so that nothing cancels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.sources.batch import Types

Vector = NDArray[np.float64]

#: Rows handled at a time, so that temporaries stay small.
_ROWS_AT_ONCE = 256

#: Rows of one type whose spread is below this share of their squared length are equal but for rounding.
_SAME = 1e-13


def compute_squared_norms(rows: NDArray[np.float64]) -> Vector:
    """Squared length of each row, (n, d) -> (n,)."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def compute_squared_distances(rows: NDArray[np.float64], means: NDArray[np.float64], types: Types) -> Vector:
    """‖x − μ_t‖² of each row x to the mean of its own type, (n,), by differences, so that nothing cancels."""
    which = np.empty(len(rows), np.int64)
    which[types.order] = np.repeat(np.arange(len(types.ids)), np.diff(types.begin))
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        distances[part] = compute_squared_norms(rows[part] - means[which[part]])
    return distances


def compute_variances(scatters: Vector, energy: Vector, n: NDArray[np.int64]) -> Vector:
    """V_t, (k,); what is only the rounding of equal rows is zero."""
    return np.asarray(np.where(scatters > _SAME * energy, scatters / n, 0.0))


def sum_by_type(types: Types, values: Vector) -> Vector:
    """Sum of values, (n,), over the rows of each type, (k,)."""
    return np.asarray(np.add.reduceat(values[types.order], types.begin[:-1]))
