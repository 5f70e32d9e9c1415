"""What a cosine cut-off in one space becomes in another space of the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.errors import InputError
from isotrope.statistics.pair_cosines import PairCosines, Vector, compute_shared_variance
from isotrope.statistics.points import Image

#: Cut-offs that people use.
CUTOFFS = (0.5, 0.6, 0.7, 0.8, 0.9)

#: About so many pairs are looked at where rows make more.
PAIRS = 1_000_000

#: Half the width of a 95 % interval in standard errors of a difference between two samples of the same size.
_WIDTH = 1.959964 * math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Cutoff:
    """A cosine cut-off in one space, and the one that as many pairs pass in another space of the same rows.

    Attributes:
        before: Cut-off in the first space, such as before a repair.
        after: Cut-off in the other space; NaN where no pair reaches the one before.
        share: Share of the pairs that pass.
        kept: Share of the passing pairs that still pass. The others changed their order, which no cut-off can undo.
        pairs: Number of pairs.
        low: Lower end of the interval of `after`: where it lies in 95 of 100 other samples of as many rows.
        high: Upper end.
        disagree: Share of all pairs that pass in one space and not in the other.
    """

    before: float
    after: float
    share: float
    kept: float
    pairs: int
    low: float = math.nan
    high: float = math.nan
    disagree: float = math.nan


def translate(image: Image, cutoffs: Sequence[float] = CUTOFFS, *, pairs: int = PAIRS, seed: int = 0) -> list[Cutoff]:
    """New cut-offs at the same quantile of the cosines of pairs, each pair in both spaces.

    Args:
        image: rows in the first space and the same rows in the other, such as what a repair made of them.
        cutoffs: cosines, −1 to 1.
        pairs: about so many are looked at; all where there are fewer, otherwise those within random blocks of rows.
        seed: chooses the pairs.

    Examples:
        >>> rows = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
        >>> [(c.before, round(c.after, 2), c.pairs) for c in translate(Image.of(rows, rows - [0.9, 0.0]), [0.5])]
        [(0.5, 0.71, 3)]
    """
    for cutoff in cutoffs:
        if not -1.0 <= cutoff <= 1.0:
            raise InputError(f"the cosine cut-off {cutoff} is not between −1 and 1; give cosines.")
    if not len(cutoffs):
        return []
    old, new = (PairCosines.of(points.unit.rows, pairs, seed) for points in (image.rows, image.image))
    ordered = np.sort(new.cosines)
    return [_translate_one(float(cutoff), old, new, ordered) for cutoff in cutoffs]


def _translate_one(cutoff: float, old: PairCosines, new: PairCosines, ordered: Vector) -> Cutoff:
    passing, total = old.cosines >= cutoff, len(old)
    count = int(passing.sum())
    if not count:
        return Cutoff(cutoff, math.nan, 0.0, math.nan, total)
    after = float(ordered[total - count])
    still = new.cosines >= after
    change = still.astype(np.float64) - passing
    # The same pairs are counted in both spaces, so that only those that change sides make the count uncertain.
    error = _WIDTH * math.sqrt(compute_shared_variance(change, old.first, old.second, old.rows)) + 1.0
    low, high = (_find_cosine(ordered, count + side * error) for side in (1.0, -1.0))
    kept, disagree = float(still[passing].mean()), float((still != passing).mean())
    return Cutoff(cutoff, after, count / total, kept, total, low, high, disagree)


def _find_cosine(ordered: Vector, count: float) -> float:
    """The cosine that so many of the pairs reach; 1 and −1 where there are not so many."""
    if count < 1.0:
        return 1.0
    at = len(ordered) - math.ceil(count)
    return float(ordered[at]) if at >= 0 else -1.0
