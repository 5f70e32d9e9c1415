"""Rows of two sets in one table, and the random draws of a test: exchanged labels, and resampled units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

#: Labels and weights of rows, one column for each draw.
Draws = NDArray[np.float32]


class RowSet(NamedTuple):
    """Some rows of one space.

    Args:
        rows: (n, d), none of them zero or without an end.
        id: (n,), a row of the other set with the same id may be the same item; ids are unique.
        sequence: (n,), rows of one sequence are not independent of each other.
    """

    rows: Matrix
    id: NDArray[Any]
    sequence: NDArray[Any]

    @classmethod
    def of_rows(cls, rows: Any) -> RowSet:
        """Rows that are independent and have no other name than their number."""
        numbers = np.arange(len(rows))
        return cls(np.asarray(rows, np.float64), numbers, numbers)

    def take(self, keep: NDArray[Any]) -> RowSet:
        """The rows at these places, by index or mask."""
        return RowSet(self.rows[keep], self.id[keep], self.sequence[keep])


@dataclass(frozen=True, eq=False)
class TwoSets:
    """The rows of two sets, and which of them move together when labels are exchanged.

    Args:
        rows: (n, d), those of the first set before those of the second.
        second: (n,), whether a row is of the second set.
        unit: (n,), numbers from 0; rows of one unit depend on each other, such as those of one sequence.
        paired: Whether each unit has rows of both sets, which change places within it. Otherwise each unit is of one
            set, and whole units change places.
    """

    rows: Matrix
    second: Mask
    unit: Indices
    paired: bool

    @classmethod
    def join(cls, first: RowSet, second: RowSet, *, paired: bool) -> TwoSets:
        """Two sets as one table; paired: their rows with the same sequence belong together."""
        label = np.repeat([False, True], [len(first.rows), len(second.rows)])
        names = np.concatenate([first.sequence, second.sequence])
        unit = np.unique(names, return_inverse=True)[1].astype(np.int64)
        if not paired:
            unit = np.unique(2 * unit + label, return_inverse=True)[1].astype(np.int64)
        return cls(np.concatenate([first.rows, second.rows]), label, unit, paired)

    @property
    def units(self) -> int:
        return int(self.unit.max()) + 1

    @cached_property
    def membership(self) -> Any:
        """Which rows each unit has, (units, n), sparse."""
        n = len(self.unit)
        return sparse.csr_array((np.ones(n, np.float32), (self.unit, np.arange(n))), shape=(self.units, n))

    def draw_labels(self, rng: np.random.Generator, count: int) -> Draws:
        """Draw labels after exchanges under which equal distributions stay the same: 1 for the second set, (n, count).

        The first column is the true one.
        """
        if self.paired:
            swapped = rng.integers(0, 2, (self.units, count), dtype=np.int8).astype(bool)
            swapped[:, 0] = False
            return np.asarray(self.second[:, None] ^ swapped[self.unit], np.float32)
        of_unit = np.zeros(self.units, np.float32)
        of_unit[self.unit] = self.second
        drawn = rng.permuted(np.tile(of_unit[:, None], count), axis=0)
        drawn[:, 0] = of_unit
        return np.asarray(drawn[self.unit])

    def draw_weights(self, rng: np.random.Generator, count: int) -> Draws:
        """Draw how often each row is in a bootstrap resample of units, (n, count); sets keep their numbers of units.

        The first column is of no resample: every row is in it once.
        """
        weights = np.zeros((self.units, count), np.float32)
        of_unit = np.zeros(self.units, bool)
        of_unit[self.unit] = self.second
        parts = [np.arange(self.units)] if self.paired else [np.flatnonzero(of_unit), np.flatnonzero(~of_unit)]
        for units in parts:
            cells = rng.integers(0, len(units), (len(units), count)) * count + np.arange(count)
            drawn = np.bincount(cells.ravel(), minlength=len(units) * count)
            weights[units] = drawn.reshape(len(units), count)
        weights[:, 0] = 1.0
        return np.asarray(weights[self.unit])
