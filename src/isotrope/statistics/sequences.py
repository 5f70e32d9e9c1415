"""How alike the rows of one sequence are, summed over sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.errors import MergeError
from isotrope.statistics.saved_arrays import MOST, refuse_unless, require, require_counts
from isotrope.statistics.usable_rows import UsableRows

#: The counts and the sums in the order in which they are saved.
_COUNTS = ("count", "directed", "rows")
_SUMS = ("uniformity", "first", "first_with_itself", "inner")


#: A sum of rows shorter than this share of the longest of them is what rounding left of rows that cancel.
_CANCELLED = 1e-12


@dataclass(eq=False)
class SequenceStatistics:
    """Sums over sequences of at least two rows. A value with an empty element `SequenceStatistics.empty(d)` and `+`.

    units: (d,), Σx/‖x‖ over all rows. lengths: (longest + 1,), how many sequences have each length.
    count: sequences of two rows or more. directed: those whose rows do not cancel, so that their mean has a direction.
    rows: rows of all sequences. uniformity: Σ over sequences of the mean cosine over distinct pairs. first: Σ of the
    mean cosine of the first row to the others (first_with_itself: to itself too). inner: Σ over directed sequences of
    the mean cosine of the rows to their mean.
    """

    units: NDArray[np.float64]
    lengths: NDArray[np.int64]
    count: int = 0
    directed: int = 0
    rows: int = 0
    uniformity: float = 0.0
    first: float = 0.0
    first_with_itself: float = 0.0
    inner: float = 0.0

    @classmethod
    def empty(cls, d: int) -> SequenceStatistics:
        return cls(np.zeros(d), np.zeros(1, np.int64))

    @classmethod
    def of(cls, rows: UsableRows) -> SequenceStatistics:
        """The statistics of the rows of whole sequences."""
        n, d = rows.values.shape
        if n == 0:
            return cls.empty(d)
        starts = rows.rows.starts()
        length = np.diff(np.append(starts, n))
        # One sparse product (sequences × rows) each: several times faster than np.add.reduceat.
        at, ends, shape = np.arange(n), np.append(starts, n), (len(starts), n)
        values, inverse = rows.values, 1.0 / rows.norms
        total = sparse.csr_array((inverse, at, ends), shape=shape) @ rows.wide
        summed = sparse.csr_array((np.ones(n), at, ends), shape=shape) @ rows.wide
        pairs = length > 1
        t, s, m, head = length[pairs], total[pairs], summed[pairs], starts[pairs]
        square = np.einsum("ij,ij->i", s, s)
        to_first = np.einsum("ij,ij->i", s, values[head]) / rows.norms[head]
        mean_norm = np.sqrt(np.einsum("ij,ij->i", m, m))
        directed = mean_norm > _CANCELLED * np.maximum.reduceat(rows.norms, starts)[pairs]
        to_mean = np.einsum("ij,ij->i", s, m)[directed] / mean_norm[directed]
        return cls(
            count=len(t),
            directed=int(directed.sum()),
            rows=n,
            uniformity=float(((square - t) / (t * (t - 1.0))).sum()),
            first=float(((to_first - 1.0) / (t - 1.0)).sum()),
            first_with_itself=float((to_first / t).sum()),
            inner=float((to_mean / t[directed]).sum()),
            units=total.sum(axis=0),
            lengths=np.bincount(length),
        )

    @property
    def d(self) -> int:
        return len(self.units)

    def check(self, other: SequenceStatistics) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge sequences of width {other.d} with sequences of width {self.d}.")

    def __add__(self, other: SequenceStatistics) -> SequenceStatistics:
        return self._combine(other, sign=1)

    def without(self, part: SequenceStatistics) -> SequenceStatistics:
        """These sums with the sequences of `part`, which are among them, taken out."""
        return self._combine(part, sign=-1)

    def _combine(self, other: SequenceStatistics, sign: int) -> SequenceStatistics:
        self.check(other)
        lengths = np.zeros(max(len(self.lengths), len(other.lengths)), np.int64)
        lengths[: len(self.lengths)] += self.lengths
        lengths[: len(other.lengths)] += sign * other.lengths
        numbers = {name: getattr(self, name) + sign * getattr(other, name) for name in (*_COUNTS, *_SUMS)}
        return SequenceStatistics(self.units + sign * other.units, lengths, **numbers)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        return {
            "counts": np.array([getattr(self, name) for name in _COUNTS], dtype=np.int64),
            "sums": np.array([getattr(self, name) for name in _SUMS]),
            "units": self.units,
            "lengths": self.lengths,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SequenceStatistics:
        """The state that `arrays` returned."""
        counts: dict[str, Any] = dict(zip(_COUNTS, require_counts(arrays, "counts", 3).tolist(), strict=True))
        sums: dict[str, Any] = dict(
            zip(_SUMS, require(arrays, "sums", np.float64, (4,), within=MOST).tolist(), strict=True)
        )
        units, lengths = (
            require(arrays, "units", np.float64, (None,), within=MOST),
            require_counts(arrays, "lengths", None),
        )
        rows = float(np.arange(len(lengths)) @ lengths.astype(np.float64))
        refuse_unless(
            counts["directed"] <= counts["count"] == lengths[2:].sum() and counts["rows"] == rows,
            f"the saved counts of sequences ({counts}) do not agree with their lengths",
        )
        return cls(units, lengths, **counts, **sums)
