"""What an old cosine cut-off becomes after a repair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.statistics import Image

Vector = NDArray[np.float64]

#: Cut-offs that people use.
CUTOFFS = (0.5, 0.6, 0.7, 0.8, 0.9)

#: Pairs that are looked at where rows make more.
PAIRS = 1_000_000


@dataclass(frozen=True, slots=True)
class Cutoff:
    """A cosine cut-off, and the one that as many pairs pass after a repair.

    Attributes:
        before: Cut-off before the repair.
        after: Cut-off after it; NaN where no pair reaches the one before.
        share: Share of the pairs that pass.
        kept: Share of the passing pairs that still pass. The others changed their order, which no cut-off can undo.
        pairs: Number of pairs.
    """

    before: float
    after: float
    share: float
    kept: float
    pairs: int


def translate(image: Image, cutoffs: Sequence[float] = CUTOFFS, *, pairs: int = PAIRS, seed: int = 0) -> list[Cutoff]:
    """New cut-offs at the same quantile of the cosines of pairs, each pair before and after a repair.

    Args:
        image: rows and what the repair made of them.
        cutoffs: cosines, −1 to 1.
        pairs: at most about so many are looked at; all where there are fewer, otherwise each row with as many others.
        seed: chooses the pairs.

    Examples:
        >>> rows = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
        >>> [(c.before, round(c.after, 2), c.pairs) for c in translate(Image.of(rows, rows - [0.9, 0.0]), [0.5])]
        [(0.5, 0.71, 3)]
    """
    if odd := [c for c in cutoffs if not -1.0 <= c <= 1.0]:
        raise InputError(f"the cosine cut-off {odd[0]} is not between −1 and 1; give cosines.")
    if not len(cutoffs):
        return []
    found = [_compute_cosines(points.unit.rows, pairs, seed) for points in (image.rows, image.image)]
    return [_translate_one(float(c), *found) for c in cutoffs]


def _translate_one(cutoff: float, old: Vector, new: Vector) -> Cutoff:
    above = old >= cutoff
    count = int(above.sum())
    if not count:
        return Cutoff(cutoff, float("nan"), 0.0, float("nan"), len(old))
    after = float(np.partition(new, len(new) - count)[len(new) - count])
    return Cutoff(cutoff, after, count / len(old), float((new[above] >= after).mean()), len(old))


def _compute_cosines(unit: NDArray[Any], pairs: int, seed: int) -> Vector:
    """Cosines of pairs of unit rows, (pairs,); the same pairs for any rows of the same number."""
    shuffled = unit[np.random.default_rng(seed).permutation(len(unit))]
    parts = [np.einsum("ij,ij->i", shuffled[low], shuffled[high]) for low, high in _list_pairs(len(unit), pairs)]
    return np.concatenate([np.empty(0), *parts])


def _list_pairs(n: int, pairs: int) -> Iterator[tuple[slice, slice]]:
    """Rows with those that stand s places further on, in a circle, s = 1, 2, ...: each pair once, each row as often."""
    for s in range(1, min(n // 2, max(1, -(-pairs // max(n, 1)))) + 1):
        yield slice(0, n - s), slice(s, n)
        if 2 * s < n:  # half-way round, both ways lead to the same pairs
            yield slice(n - s, n), slice(0, s)
