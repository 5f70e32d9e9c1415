"""A sample of whole sequences: the same ones whatever the split, the order and the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.block import Block, block
from isotrope.statistics.hashing import mix

_COLUMNS = ("sequence", "token", "position", "special")

#: Rows held beyond the wanted number, as a share of it, before the surplus is dropped.
_SLACK = 0.25


@dataclass(eq=False)
class Sample:
    """The rows of the sequences of smallest hash: a sequence is kept while those before it hold fewer than `size` rows.

    A value with an empty element `Sample.empty(d, size, seed)` and `+`. The rule needs no memory of what was dropped,
    so merging is a law: dropped once means that enough rows come before it, and more never makes it fewer.

    size: rows wanted (the last sequence may go beyond). seed: chooses the hash. sequences: how many sequences
    were offered in all. Rows without sequences are each a sequence of one.
    """

    d: int
    size: int
    seed: int = 0
    sequences: int = 0
    _parts: list[tuple[NDArray[np.floating[Any]], Rows]] = field(default_factory=list)
    _held: int = 0
    _settled: bool = True
    _bar: int | None = None  # hashes above this one can no longer enter

    @classmethod
    def empty(cls, d: int, size: int = 20_000, seed: int = 0) -> Sample:
        return cls(d, size, seed)

    def add(self, rows: Block) -> None:
        """Offer one block of whole sequences."""
        self.sequences += len(rows.rows.starts())
        known = rows.rows
        if self._bar is None:
            keep = np.ones(len(rows), dtype=bool)
        else:
            keep = mix(known.sequence, self.seed) <= np.uint64(self._bar)
        if keep.any():
            self._take(rows.values[keep], known.take(keep))

    def _take(self, values: NDArray[np.floating[Any]], known: Rows) -> None:
        columns = {name: getattr(known, name) for name in _COLUMNS}
        self._parts.append((values, Rows(**columns)))
        self._held += len(values)
        self._settled = False
        if self._held > (1 + _SLACK) * self.size:
            self._settle()

    def _settle(self) -> None:
        """Sort the sequences by hash and drop those that cannot stay."""
        if self._settled:
            return
        sequence = np.concatenate([known.sequence for _, known in self._parts])
        hashes = mix(sequence, self.seed)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        # A sequence stays while the rows before it, which are as many as its own first index, are too few.
        kept = int(np.searchsorted(first, self.size, side="left"))
        if kept < len(first):
            order = order[: first[kept]]
        if len(order) >= self.size:
            self._bar = int(hashes[order[-1]])
        values = np.concatenate([v for v, _ in self._parts]) if len(self._parts) > 1 else self._parts[0][0]
        columns = {name: _join([getattr(known, name) for _, known in self._parts]) for name in _COLUMNS}
        rows = Rows(**{name: None if c is None else c[order] for name, c in columns.items()})
        self._parts = [(values[order], rows)]
        self._held = len(order)
        self._settled = True

    @property
    def values(self) -> NDArray[np.floating[Any]]:
        """The sampled rows, (n, d), in the type in which they came, sequences in order of their hash."""
        self._settle()
        return self._parts[0][0] if self._parts else np.empty((0, self.d), np.float32)

    @property
    def rows(self) -> Rows:
        """What is known of each sampled row."""
        self._settle()
        return self._parts[0][1] if self._parts else Rows(np.empty(0, np.uint64))

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def taken(self) -> int:
        """How many sequences are in the sample."""
        return len(self.rows.starts())

    def block(self) -> Block:
        """The sampled rows as a block."""
        return block(self.values, self.rows)

    def __add__(self, other: Sample) -> Sample:
        wanted = (self.d, self.size, self.seed)
        if wanted != (other.d, other.size, other.seed):
            raise MergeError(
                f"cannot merge samples of (width, size, seed) {wanted} and {(other.d, other.size, other.seed)}."
            )
        result = Sample(*wanted, sequences=self.sequences + other.sequences)
        for part in (self, other):
            if part.n:
                result._take(part.values, part.rows)
        result._settle()
        return result

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        known = {name: getattr(self.rows, name) for name in _COLUMNS}
        facts = np.array([self.d, self.size, self.seed, self.sequences], dtype=np.int64)
        return {"facts": facts, "values": self.values} | {k: v for k, v in known.items() if v is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Sample:
        """The state that `arrays` returned."""
        d, size, seed, sequences = (int(v) for v in arrays["facts"])
        result = cls(d, size, seed, sequences)
        if len(arrays["values"]):
            result._take(arrays["values"], Rows(**{k: arrays[k] for k in _COLUMNS if k in arrays}))
            result._settle()
        return result


def _join(columns: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    present = [c for c in columns if c is not None]
    return np.concatenate(present) if len(present) == len(columns) else None
