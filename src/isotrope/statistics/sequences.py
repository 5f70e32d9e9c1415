"""Statistics of sequences: how alike the rows of each are, and the singular values of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.errors import MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.saved_arrays import LARGEST_SQUARE, MOST, require, require_consistent, require_counts
from isotrope.statistics.usable_rows import UsableRows

#: The counts and the sums in the order in which they are saved.
_COUNTS = ("count", "directed", "rows")
_SUMS = ("uniformity", "first", "first_with_itself", "inner")

#: Why statistics of version 0.1 do not give a measure.
NOT_KEPT = "version 0.1, which wrote these statistics, did not keep what this needs; scan again"

#: A sum of rows shorter than this share of the longest of them is what rounding left of rows that cancel.
_CANCELLED = 1e-12

#: Squared residuals below this are computed again from centred rows: a difference of sums would have lost their digits.
_NEARLY_ONE_ROW = 1e-6

#: Rows decomposed at once, about: few enough to stay near the processor.
_DECOMPOSED = 2048


@dataclass(eq=False)
class SequenceStatistics:
    """Sums over sequences of at least two rows. A value with an empty element `SequenceStatistics.empty(d)` and `+`.

    Attributes:
        units: (d,), Σx/‖x‖ over all rows.
        lengths: (longest + 1,), number of sequences of each length.
        count: Number of sequences of two rows or more.
        directed: Number of sequences whose mean is not zero, so that it has a direction.
        rows: Number of rows of all sequences.
        uniformity: Σ over sequences of the mean cosine over distinct pairs.
        first: Σ of the mean cosine of the first row to the others.
        first_with_itself: The same, with the first row itself included.
        inner: Σ over directed sequences of the mean cosine of the rows to their mean.
        residual: Σ over sequences of ‖X − 1μᵀ‖/‖X‖ (Frobenius), μ the mean of the rows of X; NaN where version 0.1,
            which did not keep it, saved some of the sums.
        firsts: (d,), Σx/‖x‖ over the first rows of the sequences; NaN likewise.
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
    residual: float = np.nan
    firsts: NDArray[np.float64] = field(default_factory=lambda: np.array(np.nan))

    @classmethod
    def empty(cls, d: int) -> SequenceStatistics:
        return cls(np.zeros(d), np.zeros(1, np.int64), residual=0.0, firsts=np.zeros(d))

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
        square = compute_squared_lengths(s)
        to_first = np.einsum("ij,ij->i", s, values[head]) / rows.norms[head]
        mean_norm = np.sqrt(compute_squared_lengths(m))
        whole = np.add.reduceat(rows.norms**2, starts)[pairs]
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
            residual=float(_compute_residuals(rows.wide, head, t, 1.0 - mean_norm**2 / (t * whole)).sum()),
            firsts=inverse[head] @ rows.wide[head],
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
        added = (*_COUNTS, *_SUMS, "units", "residual", "firsts")
        sums = {name: getattr(self, name) + sign * getattr(other, name) for name in added}
        return SequenceStatistics(lengths=lengths, **sums)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving; sums that version 0.1 lacked are left out."""
        later = {} if np.isnan(self.residual) else {"residual": np.array([self.residual]), "firsts": self.firsts}
        return {
            "counts": np.array([getattr(self, name) for name in _COUNTS], dtype=np.int64),
            "sums": np.array([getattr(self, name) for name in _SUMS]),
            "units": self.units,
            "lengths": self.lengths,
            **later,
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
        require_consistent(
            counts["directed"] <= counts["count"] == lengths[2:].sum() and counts["rows"] == rows,
            f"the saved counts of sequences ({counts}) do not agree with their lengths",
        )
        if {"residual", "firsts"} & arrays.keys():
            (sums["residual"],) = require(arrays, "residual", np.float64, (1,), within=MOST).tolist()
            sums["firsts"] = require(arrays, "firsts", np.float64, (len(units),), within=MOST)
        return cls(units, lengths, **counts, **sums)


def _compute_residuals(
    rows: NDArray[np.float64],
    starts: NDArray[np.int64],
    length: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """‖X − 1μᵀ‖/‖X‖ of each sequence X whose rows have the mean μ, (m,).

    Args:
        rows: the rows of the sequences, (n, d).
        starts: the first row of each sequence, (m,).
        length: the number of its rows, (m,).
        shares: the square of the result as a difference of sums, (m,); small ones are computed again.
    """
    for i in np.flatnonzero(shares < _NEARLY_ONE_ROW):
        own = rows[starts[i] : starts[i] + length[i]]
        offsets = own - own[0]  # equal rows leave exactly nothing
        offsets -= offsets.mean(axis=0)
        shares[i] = np.vdot(offsets, offsets) / np.vdot(own, own)
    return np.sqrt(shares)


@dataclass(frozen=True, eq=False)
class SequenceSpectra:
    """Singular values of the T × d matrix of each sequence of two rows or more, in the order of the sequences' ids.

    d: width of the rows. values: (Σ min(T, d),), descending within a sequence, resolved to 1e-7 of its largest.
    starts: (m + 1,), where each sequence's values begin. sequence: (m,), their ids. A value with an empty element
    `SequenceSpectra.empty(d)` and `+`.
    """

    d: int
    values: NDArray[np.float64]
    starts: NDArray[np.int64]
    sequence: NDArray[np.uint64]

    @classmethod
    def empty(cls, d: int) -> SequenceSpectra:
        return cls(d, np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint64))

    @classmethod
    def of(cls, rows: UsableRows) -> SequenceSpectra:
        """The spectra of the rows of whole sequences."""
        return cls.of_rows(rows.values, rows.rows)

    @classmethod
    def of_rows(cls, rows: NDArray[np.floating[Any]], known: Rows) -> SequenceSpectra:
        """The spectra of rows, (n, d), of whole sequences, some sequences of one length decomposed together."""
        begin = known.starts()
        length = np.diff(np.append(begin, len(rows)))
        d = rows.shape[1]
        kept = np.flatnonzero(length > 1)
        ids, begin, length = known.sequence[begin[kept]], begin[kept], length[kept]
        starts = np.append(0, np.cumsum(np.minimum(length, d)))
        values = np.empty(int(starts[-1]))
        for size in np.unique(length):
            alike = np.flatnonzero(length == size)
            for which in np.array_split(alike, -(-len(alike) * size // _DECOMPOSED)):
                stack = rows[begin[which][:, None] + np.arange(size)].astype(np.float64, copy=False)
                flat = stack @ stack.transpose(0, 2, 1) if size <= d else stack.transpose(0, 2, 1) @ stack
                squares = np.linalg.eigvalsh(flat)[:, ::-1]
                floor = np.maximum(squares[:, :1], 0) * (32 * np.finfo(np.float64).eps)
                found = np.sqrt(np.where(squares > floor, squares, 0.0))
                values[starts[which][:, None] + np.arange(min(size, d))] = found
        return cls(d, values, starts, ids)._take(np.argsort(ids, kind="stable"))

    def __len__(self) -> int:
        return len(self.sequence)

    def _take(self, order: NDArray[np.int64]) -> SequenceSpectra:
        """The sequences at these places, in this order."""
        size = np.diff(self.starts)[order]
        starts = np.append(0, np.cumsum(size))
        at = np.arange(starts[-1]) + np.repeat(self.starts[:-1][order] - starts[:-1], size)
        return SequenceSpectra(self.d, self.values[at], starts, self.sequence[order])

    def check(self, other: SequenceSpectra) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge spectra of rows of width {other.d} and {self.d}.")

    def __add__(self, other: SequenceSpectra) -> SequenceSpectra:
        self.check(other)
        starts = np.concatenate([self.starts, other.starts[1:] + self.starts[-1]])
        ids = np.concatenate([self.sequence, other.sequence])
        joined = SequenceSpectra(self.d, np.concatenate([self.values, other.values]), starts, ids)
        return joined._take(np.argsort(ids, kind="stable"))

    def only(self, ids: NDArray[np.uint64]) -> SequenceSpectra:
        """The spectra of those of the sequences whose ids are given."""
        return self._take(np.flatnonzero(np.isin(self.sequence, ids)))

    def without(self, part: SequenceSpectra) -> SequenceSpectra:
        """These spectra without the sequences of `part`."""
        self.check(part)
        return self._take(np.flatnonzero(~np.isin(self.sequence, part.sequence)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        facts = np.array([self.d], dtype=np.int64)
        return {"facts": facts, "values": self.values, "starts": self.starts, "sequence": self.sequence}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SequenceSpectra:
        """The state that `arrays` returned."""
        (d,) = require(arrays, "facts", np.int64, (1,), least=1, most=MOST).tolist()
        values = require(arrays, "values", np.float64, (None,), least=0, most=LARGEST_SQUARE)
        sequence = require(arrays, "sequence", np.uint64, (None,))
        starts = require_counts(arrays, "starts", len(sequence) + 1)
        size = np.diff(starts)
        require_consistent(
            starts[0] == 0 and starts[-1] == len(values) and bool(((size > 0) & (size <= d)).all()),
            "the saved spectra do not begin where they say",
        )
        return cls(d, values, starts, sequence)
