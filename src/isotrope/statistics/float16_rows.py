"""Rows as float16 numbers with a scale for each row: half the size of float32, whatever the rows' lengths and mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics.saved_arrays import LARGEST, require

Rows = NDArray[np.floating[Any]]

#: What the largest number of a row becomes: small ones then keep their digits too, down to 2e-9 of it.
_TOP = 2.0**15

#: No number of a row is off by more than this share of itself, or this share of the largest number of its row.
RELATIVE, ABSOLUTE = 2.0**-11, 2.0**-40

#: Rows that are encoded at a time, so that temporaries stay small.
_ROWS = 4096


def encode_rows(rows: Rows, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Rows, (n, d), as arrays for saving: half, scale, less_mean and mean.

    A row is stored as it is or less the mean, whichever is smaller. So neither a mean far larger than the spread nor a
    row far shorter than the mean loses its digits: what is stored is right to `RELATIVE` of each of its numbers.

    Args:
        rows: float32 or float64.
        mean: Of all rows, (d,).

    >>> rows = np.array([[1000.0, 1000.5], [0.25, 0.0]])
    >>> decode_rows(encode_rows(rows, np.array([1000.0, 1000.0]))).tolist()
    [[1000.0, 1000.5], [0.25, 0.0]]
    """
    n, d = rows.shape
    centre = mean.astype(rows.dtype)
    half, scale, less_mean = np.empty((n, d), np.float16), np.ones(n, rows.dtype), np.zeros(n, bool)
    for begin in range(0, n, _ROWS):
        part = slice(begin, begin + _ROWS)
        offsets = rows[part] - centre
        less_mean[part] = np.abs(offsets).max(axis=1) < np.abs(rows[part]).max(axis=1)
        stored = np.where(less_mean[part, None], offsets, rows[part])
        top = np.abs(stored).max(axis=1)
        scale[part] = np.where(top > 0, top / _TOP, 1.0)
        # Rows so short that the scale has no digits left are as good as zero beside it.
        scale[part] = np.maximum(scale[part], np.finfo(rows.dtype).tiny)
        half[part] = stored / scale[part, None]
    return {"half": half, "scale": scale, "less_mean": less_mean, "mean": centre}


def decode_rows(arrays: Mapping[str, NDArray[Any]]) -> Rows:
    """The rows that `encode_rows` stored, in the type in which they came, (n, d)."""
    half = require(arrays, "half", np.float16, (None, None))
    n, d = half.shape
    scale = require(arrays, "scale", (np.float32, np.float64), (n,), least=0, most=LARGEST)
    mean = require(arrays, "mean", scale.dtype, (d,), within=LARGEST)
    less_mean = require(arrays, "less_mean", np.bool_, (n,))
    rows: Rows = half * scale[:, None]
    rows[less_mean] += mean
    return require({"rows": rows}, "rows", scale.dtype, (n, d), within=LARGEST)
