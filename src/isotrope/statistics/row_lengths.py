"""How long rows are: a histogram of lengths, and the few rows that stand out, by id and with their vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.saved_arrays import LARGEST, MOST, require, require_consistent
from isotrope.statistics.usable_rows import UsableRows, prepare_rows

#: Rows of each kind that are kept by name.
KEPT = 16

#: Bins of the histogram for each doubling of the length: a bin is 1.1 % wide.
_BINS = 64

#: Lengths that can occur, as powers of two: `prepare_rows` leaves out what is beyond.
_SHORTEST, _LONGEST = -234, 234

#: The kinds of rows that are kept, and what comes first among them: the shortest, the longest, or the smallest id.
_KINDS = {"shortest": 1.0, "longest": -1.0, "zero": 0.0, "nonfinite": 0.0}


class KeptRows(NamedTuple):
    """Some rows by their ids, (k,), with their lengths (k,) and vectors (k, d), which zero and NaN rows lack: (k, 0).

    position, token: -1 where rows have none.
    """

    sequence: NDArray[np.uint64]
    position: NDArray[np.int64]
    token: NDArray[np.int64]
    length: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def n(self) -> int:
        return len(self.length)

    def take(self, which: Any) -> KeptRows:
        """The rows selected by a mask, a slice or an index array."""
        return KeptRows(*(column[which] for column in self))

    def to_usable_rows(self) -> UsableRows:
        """The rows, for their moments."""
        return prepare_rows(self.values, Rows(self.sequence))


@dataclass(eq=False)
class RowLengths:
    """A histogram of the logarithm of row lengths, and the shortest, longest, zero and non-finite rows.

    A value with an empty element `RowLengths.empty(d)` and `+`. Of each kind the first KEPT rows stay; rows of equal
    length are ordered by id, so that what stays does not depend on the order in which rows came.

    bins: (m,), ascending, floor(64 log2 length). counts: (m,), rows in each.

    >>> lengths = RowLengths.of(prepare_rows(np.array([[3.0, 4.0], [0.0, 0.0], [30.0, 40.0], [6.0, 8.0]])))
    >>> round(lengths.median, 1), lengths.longest.sequence.tolist(), lengths.zero.sequence.tolist()
    (10.0, [2, 3, 0], [1])
    """

    d: int
    bins: NDArray[np.int64]
    counts: NDArray[np.int64]
    shortest: KeptRows
    longest: KeptRows
    zero: KeptRows
    nonfinite: KeptRows

    @classmethod
    def empty(cls, d: int) -> RowLengths:
        nothing = np.empty(0, np.int64)
        none = {kind: _read_kept_rows(None, None, d if rank else 0) for kind, rank in _KINDS.items()}
        return cls(d, nothing, nothing.copy(), **none)

    @classmethod
    def of(cls, rows: UsableRows) -> RowLengths:
        """The lengths of some rows."""
        bins, counts = np.unique(_bins(rows.norms), return_counts=True)
        few = min(KEPT, len(rows))
        kept: dict[str, KeptRows] = {}
        for kind, rank in (("shortest", 1.0), ("longest", -1.0)):
            # Rows as long as the last one that stays are all looked at: which of them stay is a matter of their ids.
            limit = np.partition(rank * rows.norms, few - 1)[few - 1] if few else 0.0
            at = np.flatnonzero(rank * rows.norms <= limit)
            known = _read_kept_rows(rows.rows.take(at), rows.norms[at], 0)
            order = _order(known, rank)
            kept[kind] = known.take(order)._replace(values=rows.values[at[order]].astype(np.float64))
        for kind, known_rows in (("zero", rows.zero_rows), ("nonfinite", rows.nonfinite_rows)):
            known = _read_kept_rows(known_rows, None, 0)
            kept[kind] = known.take(_order(known, 0.0))
        return cls(rows.values.shape[1], bins, counts.astype(np.int64), **kept)

    @property
    def median(self) -> float:
        """The median length, to 1 %; NaN without rows."""
        if not len(self.counts):
            return float("nan")
        middle = np.searchsorted(np.cumsum(self.counts), (self.counts.sum() + 1) // 2)
        return float(2.0 ** ((self.bins[middle] + 0.5) / _BINS))

    def count_below(self, length: float) -> int:
        """How many rows are shorter, to the nearest bin."""
        return int(self.counts[self.bins < _bin(length)].sum())

    def count_above(self, length: float) -> int:
        """How many rows are longer, to the nearest bin."""
        return int(self.counts[self.bins > _bin(length)].sum())

    def below(self, length: float) -> KeptRows:
        """The rows of `count_below` that are kept, the shortest first."""
        return self.shortest.take(_bins(self.shortest.length) < _bin(length))

    def above(self, length: float) -> KeptRows:
        """The rows of `count_above` that are kept, the longest first."""
        return self.longest.take(_bins(self.longest.length) > _bin(length))

    def check(self, other: RowLengths) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge lengths of rows of width {other.d} with rows of width {self.d}.")

    def __add__(self, other: RowLengths) -> RowLengths:
        self.check(other)
        bins, which = np.unique(np.concatenate([self.bins, other.bins]), return_inverse=True)
        counts = np.zeros(len(bins), np.int64)
        np.add.at(counts, which, np.concatenate([self.counts, other.counts]))
        kept = {kind: _merge(getattr(self, kind), getattr(other, kind), rank) for kind, rank in _KINDS.items()}
        return RowLengths(self.d, bins, counts, **kept)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        kept = {f"{kind}.{name}": column for kind in _KINDS for name, column in getattr(self, kind)._asdict().items()}
        return {"width": np.array([self.d], np.int64), "bins": self.bins, "counts": self.counts, **kept}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RowLengths:
        """The state that `arrays` returned."""
        (d,) = require(arrays, "width", np.int64, (1,), least=1, most=MOST).tolist()
        bins = require(arrays, "bins", np.int64, (None,), least=_SHORTEST * _BINS, most=_LONGEST * _BINS)
        counts = require(arrays, "counts", np.int64, bins.shape, least=1, most=MOST)
        require_consistent(bool((np.diff(bins) > 0).all()), "the saved histogram of row lengths is not in order")
        return cls(d, bins, counts, **{kind: _load(arrays, kind, d if rank else 0) for kind, rank in _KINDS.items()})


def _bins(lengths: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.floor(_BINS * np.log2(lengths)), dtype=np.int64)


def _bin(length: float) -> int:
    return int(_bins(np.array([length]))[0])


def _read_kept_rows(known: Rows | None, lengths: NDArray[np.float64] | None, d: int) -> KeptRows:
    """Rows by what is known of them, (k,), with vectors still to be filled in, (k, d)."""
    known = Rows(np.empty(0, np.uint64)) if known is None else known
    k = len(known)
    position, token = (np.full(k, -1, np.int64) if c is None else c for c in (known.position, known.token))
    return KeptRows(known.sequence, position, token, np.zeros(k) if lengths is None else lengths, np.zeros((k, d)))


def _order(rows: KeptRows, rank: float) -> NDArray[np.int64]:
    """Which rows stay, in order."""
    return np.lexsort((rows.token, rows.position, rows.sequence, rank * rows.length))[:KEPT]


def _merge(one: KeptRows, other: KeptRows, rank: float) -> KeptRows:
    joined = KeptRows._make(map(np.concatenate, zip(one, other, strict=True)))
    return joined.take(_order(joined, rank))


def _load(arrays: Mapping[str, NDArray[Any]], kind: str, d: int) -> KeptRows:
    """The rows of one kind from a file."""
    values = require(arrays, f"{kind}.values", np.float64, (None, d), within=LARGEST)
    length = require(arrays, f"{kind}.length", np.float64, (len(values),), least=0, most=LARGEST)
    sequence = require(arrays, f"{kind}.sequence", np.uint64, length.shape)
    position, token = (require(arrays, f"{kind}.{name}", np.int64, length.shape) for name in ("position", "token"))
    rows = KeptRows(sequence, position, token, length, values)
    require_consistent(rows.n <= KEPT, f"there are {rows.n} saved {kind} rows")
    require_consistent(not d or bool((length > 0).all()), f"saved {kind} rows have no length")
    require_consistent(
        np.array_equal(_order(rows, _KINDS[kind]), np.arange(rows.n)), f"saved {kind} rows are not in order"
    )
    return rows
