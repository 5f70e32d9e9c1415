"""Which rows stay each other's neighbours when a space is repaired."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.advice.passage_halves import unit

#: Neighbours of each row that are looked at, and rows at most.
NEIGHBOURS, _MOST = 10, 2_000


def kept(before: NDArray[Any], after: NDArray[Any]) -> float:
    """The share of each row's ten nearest rows by cosine that still are so afterwards, (n, d) and (n, k) -> 0 to 1.

    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> kept(x, 3 * x), kept(x, np.random.default_rng(1).normal(size=(100, 4))) < 0.3
    (1.0, True)
    """
    first, second = (_nearest(rows[:_MOST]) for rows in (before, after))
    both = sum(len(np.intersect1d(a, b)) for a, b in zip(first, second, strict=True))
    return both / first.size


def _nearest(rows: NDArray[Any]) -> NDArray[np.int64]:
    directions = unit(rows)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    count = min(NEIGHBOURS, len(rows) - 1)
    return np.argpartition(-cosines, count - 1, axis=1)[:, :count]
