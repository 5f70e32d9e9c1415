"""How alike the rows of one sequence are, summed over sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.errors import MergeError
from isotrope.statistics.block import Block

#: The sums in the order in which they are saved.
_SUMS = ("uniformity", "first", "first_with_itself", "inner")


@dataclass(eq=False)
class SequenceStatistics:
    """Sums over sequences of at least two rows. A value with an empty element `SequenceStatistics.empty(d)` and `+`.

    count: sequences of two rows or more. rows: rows of all sequences. uniformity: Σ over sequences of the mean
    cosine over distinct pairs. first: Σ of the mean cosine of the first row to the others (first_with_itself: to
    itself too). inner: Σ of the mean cosine of the rows to their sequence's mean. units: (d,), Σx/‖x‖ over all
    rows. lengths: (longest + 1,), how many sequences have each length.
    """

    count: int
    rows: int
    uniformity: float
    first: float
    first_with_itself: float
    inner: float
    units: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @classmethod
    def empty(cls, d: int) -> SequenceStatistics:
        return cls(0, 0, 0.0, 0.0, 0.0, 0.0, np.zeros(d), np.zeros(1, np.int64))

    @classmethod
    def of(cls, rows: Block) -> SequenceStatistics:
        """The statistics of one block of whole sequences."""
        n, d = rows.values.shape
        if n == 0:
            return cls.empty(d)
        starts = rows.rows.starts()
        length = np.diff(np.append(starts, n))
        # One sparse product (sequences × rows) each: several times faster than np.add.reduceat.
        which, shape = (np.repeat(np.arange(len(starts)), length), np.arange(n)), (len(starts), n)
        total = sparse.csr_array((1.0 / rows.norms, which), shape=shape) @ rows.wide
        mean = sparse.csr_array((np.ones(n), which), shape=shape) @ rows.wide
        mean_norm = np.linalg.norm(mean, axis=1)
        # A sequence of one row has no pairs; one whose rows cancel exactly has no mean direction.
        usable = (length > 1) & (mean_norm > 0)
        t, s, head = length[usable], total[usable], starts[usable]
        square = np.einsum("ij,ij->i", s, s)
        to_first = np.einsum("ij,ij->i", s, rows.wide[head]) / rows.norms[head]
        to_mean = np.einsum("ij,ij->i", s, mean[usable]) / mean_norm[usable]
        return cls(
            count=int(usable.sum()),
            rows=n,
            uniformity=float(((square - t) / (t * (t - 1.0))).sum()),
            first=float(((to_first - 1.0) / (t - 1.0)).sum()),
            first_with_itself=float((to_first / t).sum()),
            inner=float((to_mean / t).sum()),
            units=total.sum(axis=0),
            lengths=np.bincount(length),
        )

    @property
    def d(self) -> int:
        return len(self.units)

    def __add__(self, other: SequenceStatistics) -> SequenceStatistics:
        return self._merged(other, sign=1)

    def without(self, part: SequenceStatistics) -> SequenceStatistics:
        """These sums with the sequences of `part`, which are among them, taken out."""
        return self._merged(part, sign=-1)

    def _merged(self, other: SequenceStatistics, sign: int) -> SequenceStatistics:
        if other.d != self.d:
            raise MergeError(f"cannot merge sequences of width {other.d} with sequences of width {self.d}.")
        lengths = np.zeros(max(len(self.lengths), len(other.lengths)), np.int64)
        lengths[: len(self.lengths)] += self.lengths
        lengths[: len(other.lengths)] += sign * other.lengths
        sums = {name: getattr(self, name) + sign * getattr(other, name) for name in _SUMS}
        return SequenceStatistics(
            count=self.count + sign * other.count,
            rows=self.rows + sign * other.rows,
            units=self.units + sign * other.units,
            lengths=lengths,
            **sums,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        return {
            "counts": np.array([self.count, self.rows], dtype=np.int64),
            "sums": np.array([getattr(self, name) for name in _SUMS]),
            "units": self.units,
            "lengths": self.lengths,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SequenceStatistics:
        """The state that `arrays` returned."""
        count, rows = (int(v) for v in arrays["counts"])
        sums = (float(v) for v in arrays["sums"])
        return cls(count, rows, *sums, arrays["units"], arrays["lengths"])
