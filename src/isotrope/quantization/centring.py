"""Rows as the quantizers want them: about their mean, at most 1 in size, in float32."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.quantization.quantized import Floats


class Centred(NamedTuple):
    """Rows = mean + scale · values.

    values: (n, d) in float32, none beyond ±1, so that no product overflows. mean: (d,). scale: a power of two, so
    that nothing is rounded by it.
    """

    values: NDArray[np.float32]
    mean: Floats
    scale: float


def centred(rows: NDArray[np.floating[Any]]) -> Centred:
    """Centre and scale rows, (n, d): a common mean far beyond the spread would cost float32 products their digits.

    >>> values, mean, scale = centred(np.array([[1e6 + 3.0], [1e6 - 3.0]]))
    >>> values.tolist(), mean.tolist(), scale
    ([[0.75], [-0.75]], [1000000.0], 4.0)
    """
    # The mean in the rows' own type: rows that are close to it lose nothing when it is taken off.
    mean = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    offsets = rows - mean
    scale = power_of_two(offsets)
    return Centred((offsets / rows.dtype.type(scale)).astype(np.float32, copy=False), mean.astype(np.float64), scale)


def power_of_two(values: NDArray[np.floating[Any]]) -> float:
    """The smallest power of two that none of the values is beyond; 1 where all are zero."""
    largest = max(float(values.max()), -float(values.min()))
    return float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0
