"""The singular values of each sequence's token matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics.block import Block

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SequenceSpectra:
    """Singular values of the T × d matrix of each sequence of two rows or more, one after another.

    values: (Σ min(T, d),), descending within a sequence. starts: (m + 1,), where each sequence's values begin.
    sequence: (m,), their ids. A value with `+`.
    """

    values: Vector
    starts: NDArray[np.int64]
    sequence: NDArray[np.uint64]

    @classmethod
    def of(cls, rows: Block) -> SequenceSpectra:
        """The spectra of a block of whole sequences, sequences of one length decomposed together."""
        begin = rows.rows.starts()
        length = np.diff(np.append(begin, len(rows)))
        d = rows.values.shape[1]
        found: dict[int, Vector] = {}
        for size in np.unique(length[length > 1]):
            which = np.flatnonzero(length == size)
            stack = rows.wide[begin[which][:, None] + np.arange(size)]
            flat = stack @ stack.transpose(0, 2, 1) if size <= d else stack.transpose(0, 2, 1) @ stack
            squares = np.linalg.eigvalsh(flat)[:, ::-1]
            floor = np.maximum(squares[:, :1], 0) * (32 * np.finfo(np.float64).eps)
            found |= dict(zip(which.tolist(), np.sqrt(np.where(squares > floor, squares, 0.0)), strict=True))
        keys = sorted(found)
        parts = [found[k] for k in keys]
        ends = np.cumsum([0, *(len(p) for p in parts)])
        return cls(np.concatenate([np.empty(0), *parts]), ends, rows.rows.sequence[begin[keys]])

    def __len__(self) -> int:
        return len(self.sequence)

    def __add__(self, other: SequenceSpectra) -> SequenceSpectra:
        starts = np.concatenate([self.starts, other.starts[1:] + self.starts[-1]])
        ids = np.concatenate([self.sequence, other.sequence])
        return SequenceSpectra(np.concatenate([self.values, other.values]), starts, ids)

    def without(self, part: SequenceSpectra) -> SequenceSpectra:
        """These spectra without the sequences of `part`."""
        keep = ~np.isin(self.sequence, part.sequence)
        size = np.diff(self.starts)
        return SequenceSpectra(
            self.values[np.repeat(keep, size)], np.cumsum(np.append(0, size[keep])), self.sequence[keep]
        )
