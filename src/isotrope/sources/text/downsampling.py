"""Layers that change the length of a sequence: how many tokens one of their rows stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def stride(tokens: int, rows: int) -> int | None:
    """Tokens to a row, None where that is no whole number.

    >>> stride(16, 16), stride(16, 4), stride(16, 5), stride(16, 32)
    (1, 4, None, None)
    """
    return tokens // rows if 0 < rows <= tokens and tokens % rows == 0 else None


def multiple(strides: Iterable[int | None]) -> int:
    """The length of which texts must be multiples, so that each row of each layer stands for whole tokens.

    >>> multiple([1, 4, None, 6])
    12
    """
    return math.lcm(*(s for s in strides if s is not None))


def merged(mask: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
    """A mask (b, t) of rows that stand for several tokens each, (b, t / step): true where any of them is.

    >>> merged(np.array([[True, True, True, False, False, False]]), 2).tolist()
    [[True, True, False]]
    """
    return np.asarray(mask.reshape(len(mask), -1, step).any(axis=2))
