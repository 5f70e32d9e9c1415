"""Items that both sets have, found by their ids: how much their neighbours and their vectors have changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isotrope.compute.arrays import to_unit_rows
from isotrope.statistics.neighbours import nearest
from isotrope.two_sample.neighbourhoods import NEIGHBOURS
from isotrope.two_sample.pair_means import Vector
from isotrope.two_sample.two_sets import Indices, Mask, Matrix, RowSet

#: With fewer rows or sequences in common, agreement of neighbours could be chance; of each, one neighbour counts for
#: so many of them.
_FEWEST, _ROWS_PER_NEIGHBOUR = 50, 20

#: Rows of the same number are the same item where this share of their neighbours agrees; by chance it is 0.05 at most.
_AGREEMENT = 0.15

#: A vector is unchanged where it moved less than this share of the spread of the rows: rounding, or another machine.
_MOVED = 0.01


class MeanWithInterval(NamedTuple):
    """A mean over rows with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class SameRows:
    """The rows of two sets that are the same items.

    Args:
        first: (s,), their places in the first set.
        second: (s,), in the second.
        overlap: The share of their nearest neighbours, among these items alone, that stayed.
        cosine: The cosine of old and new vector.
        unchanged: (s,), whether the vector is the same up to rounding.
        neighbours: How many neighbours of each were compared.
    """

    first: Indices
    second: Indices
    overlap: MeanWithInterval
    cosine: MeanWithInterval
    unchanged: Mask
    neighbours: int


def find_same_rows(first: RowSet, second: RowSet) -> SameRows | None:
    """Find the rows that are the same items in both sets; None where equal ids are a coincidence.

    Ids are often row numbers, which two files of different items share too. So their neighbours are compared: the same
    items have the same neighbours far more often than by chance, even when another model made the vectors.
    """
    _, here, there = np.intersect1d(first.id, second.id, return_indices=True)
    sequences, unit = np.unique(first.sequence[here], return_inverse=True)
    if len(sequences) < _FEWEST:
        return None
    before, after = first.rows[here], second.rows[there]
    k = min(NEIGHBOURS, len(sequences) // _ROWS_PER_NEIGHBOUR)
    # Rows of one sequence are close to each other in any text, so that they say nothing of whether it is the same one.
    overlap = compute_overlap(before, after, k, unit.astype(np.int64))
    if overlap.mean() < _AGREEMENT:
        return None
    cosine = np.einsum("ij,ij->i", to_unit_rows(before), to_unit_rows(after))
    spread = math.sqrt(float(np.mean(np.sum((before - before.mean(axis=0)) ** 2, axis=1))))
    unchanged = np.linalg.norm(after - before, axis=1) <= _MOVED * spread
    return SameRows(here, there, _average(overlap), _average(cosine), unchanged, k)


def compute_overlap(before: Matrix, after: Matrix, k: int, unit: Indices | None = None) -> Vector:
    """Compute for each row the share of its k nearest rows by cosine that are the same before and after, (n,).

    Args:
        before: (n, d).
        after: (n, e), the same items in the same order.
        k: How many neighbours.
        unit: (n,), numbers from 0; rows of one unit are no neighbours of each other. By default each row is its own.

    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> compute_overlap(rows, 3 * rows[:, ::-1], 1)
    array([1., 1., 1., 1.])
    """
    lists = [nearest(to_unit_rows(rows), k, unit=unit).which for rows in (before, after)]
    both = (lists[0][:, :, None] == lists[1][:, None, :]).any(axis=2)
    return np.asarray(both.mean(axis=1))


def _average(values: Vector) -> MeanWithInterval:
    """The mean with its interval from the spread of the values."""
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return MeanWithInterval(mean, max(mean - half, -1.0), min(mean + half, 1.0))
