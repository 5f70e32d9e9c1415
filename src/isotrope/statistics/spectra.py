"""The singular values of each sequence's token matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.saved_arrays import LARGEST_SQUARE, MOST, refuse_unless, require, require_counts
from isotrope.statistics.usable_rows import UsableRows

Vector = NDArray[np.float64]

#: Rows decomposed at once, about: few enough to stay near the processor.
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class SequenceSpectra:
    """Singular values of the T × d matrix of each sequence of two rows or more, in the order of the sequences' ids.

    d: width of the rows. values: (Σ min(T, d),), descending within a sequence, resolved to 1e-7 of its largest.
    starts: (m + 1,), where each sequence's values begin. sequence: (m,), their ids. A value with an empty element
    `SequenceSpectra.empty(d)` and `+`.
    """

    d: int
    values: Vector
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
            for which in np.array_split(alike, -(-len(alike) * size // _ROWS)):
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
        refuse_unless(
            starts[0] == 0 and starts[-1] == len(values) and bool(((size > 0) & (size <= d)).all()),
            "the saved spectra do not begin where they say",
        )
        return cls(d, values, starts, sequence)
