"""A sample of whole sequences: the same ones whatever the split, the order and the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import mix_ids
from isotrope.compute.threads import slice_rows
from isotrope.errors import InputError, MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.saved_arrays import LARGEST, MOST, decode_rows, encode_rows, require, require_consistent
from isotrope.statistics.sequences import SequenceSpectra
from isotrope.statistics.usable_rows import UsableRows, prepare_rows

#: What may be known of a sampled row, and the types in which it is saved; the first is that in memory.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "sequence": (np.uint64,),
    "token": (np.int64, np.int32),
    "position": (np.int64, np.int32),
    "special": (np.bool_,),
}

_REAL = (np.float32, np.float64)

#: Rows held beyond the wanted number, as a share of it, before the surplus is dropped; also how much room is made.
_SLACK = 0.25

#: Bytes of a table up to which it is asked for at once; beyond, it is doubled as it fills.
_RESERVED = 256_000_000

#: Columns that are put in order at once (a line of the cache), and rows that are picked at once, to stay in the cache.
_COLUMNS, _PICKED = 16, 512


class _SamplePart(NamedTuple):
    """Rows of the table, and what is known of them."""

    at: NDArray[np.int64]
    known: Rows


@dataclass(eq=False)
class Sample:
    """The rows of the sequences of smallest hash: a sequence is kept while those before it hold fewer than `size` rows.

    A value with an empty element `Sample.empty(d, size, seed)` and `+`. The result does not depend on the order of
    merging, because a dropped sequence can never belong to the sample of a larger set.

    Attributes:
        d: Number of dimensions.
        size: Number of rows wanted (the last sequence may go beyond). Rows without sequences count as sequences of one.
        seed: Seed of the hash.
        sequences: Number of sequences seen.
    """

    d: int
    size: int
    seed: int = 0
    sequences: int = 0
    _table: NDArray[np.floating[Any]] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    _free: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # unused rows of the table
    _parts: list[_SamplePart] = field(default_factory=list)
    _settled: bool = True
    _bar: int | None = None  # hashes above this one can no longer enter
    _spectra: SequenceSpectra | None = None

    @classmethod
    def empty(cls, d: int, size: int = 20_000, seed: int = 0) -> Sample:
        if size < 1:
            raise InputError(f"a sample needs a size of at least one row, got {size}.")
        return cls(d, size, seed)

    @property
    def bar(self) -> int | None:
        """The hash above which no sequence can be in this sample or any that it is part of, None while all can."""
        self._settle()
        return self._bar

    def lower_bar(self, bar: int | None) -> None:
        """Keep no sequence above the bar of another sample that this one will be merged with: they could not stay."""
        if bar is not None:
            self._bar = bar if self._bar is None else min(bar, self._bar)

    def add(self, rows: UsableRows) -> None:
        """Offer the rows of whole sequences."""
        values, known = rows.values, rows.rows
        self._check(values.shape[1], known)
        self.sequences += len(known.starts())
        if self._bar is not None:
            keep = np.flatnonzero(mix_ids(known.sequence, self.seed) <= np.uint64(self._bar))
            values, known = values[keep], known.take(keep)
        if len(values):
            self._take(values, known)

    def _check(self, d: int, known: Rows) -> None:
        """Refuse rows that are not of the kind that is held."""
        if d != self.d:
            raise MergeError(f"cannot merge sampled rows of width {d} with rows of width {self.d}.")
        if self._parts and len(known):
            here, there = (", ".join(_columns(rows)) for rows in (self._parts[0].known, known))
            if here != there:
                raise MergeError(f"cannot merge a sample that knows {there} of its rows with one that knows {here}.")

    def _take(self, values: NDArray[np.floating[Any]], known: Rows) -> None:
        if len(self._free) < len(values) or values.dtype.itemsize > self._table.dtype.itemsize:
            self._grow(values)
        at, self._free = self._free[: len(values)], self._free[len(values) :]
        self._table[slice(at[0], at[-1] + 1) if at[-1] - at[0] + 1 == len(at) else at] = values
        # The group is not kept, so that the samples of groups can be merged.
        self._parts.append(_SamplePart(at, replace(known, group=None)))
        self._settled, self._spectra = False, None
        if sum(len(part.at) for part in self._parts) > (1 + _SLACK) * self.size:
            self._settle()

    def _grow(self, values: NDArray[np.floating[Any]]) -> None:
        """A larger table with room for more rows; the old one, which may have been handed out, stays as it is."""
        room = len(self._table)
        whole = int((1 + _SLACK) * self.size) + len(values)
        # Room that is not written to takes no memory yet, so a table of usual size is asked for whole at once.
        reserved = whole if whole * self.d * values.itemsize <= _RESERVED else 2 * room
        more = max(len(values), min(reserved, whole) - room)
        kind = values.dtype if room == 0 else np.result_type(self._table, values)
        table = np.empty((room + more, self.d), kind)
        table[:room] = self._table.reshape(room, self.d)
        self._table, self._free = table, np.append(self._free, np.arange(room, room + more))

    def _settle(self) -> None:
        """Sort the sequences by hash and drop those that cannot stay, without moving their rows."""
        if self._settled:
            return
        at = np.concatenate([part.at for part in self._parts])
        known = _join([part.known for part in self._parts])
        order = self._staying(known)
        self._parts = [_SamplePart(at[order], known.take(order))]
        unused = np.ones(len(self._table), dtype=bool)
        unused[at[order]] = False
        self._free = np.flatnonzero(unused)
        self._settled = True

    def _staying(self, known: Rows) -> NDArray[np.int64]:
        """Which rows stay, of those that are offered, in order of their hash; the bar falls to the last of them."""
        hashes = mix_ids(known.sequence, self.seed)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        # A sequence stays while the rows before it, which are as many as its own first index, are too few.
        kept = int(np.searchsorted(first, self.size, side="left"))
        if kept < len(first):
            order = order[: first[kept]]
        if len(order) >= self.size:
            self._bar = int(hashes[order[-1]])
        return order

    @property
    def values(self) -> NDArray[np.floating[Any]]:
        """The sampled rows, (n, d), in the type in which they came, sequences in order of their hash."""
        self.settle()
        return self._table if self._parts else np.empty((0, self.d), np.float32)

    def settle(self) -> None:
        """Put the rows in order; from then on reading changes nothing, until the next row comes."""
        self._settle()
        if not self._parts:
            return
        at, known = self._parts[0]
        if len(self._free) or not np.array_equal(at, np.arange(len(at))):
            # In place, a few columns at a time: a second table would be the peak of a whole scan's memory.
            for part in slice_rows(self.d, _COLUMNS):
                columns = self._table[:, part]
                columns[: len(at)] = columns[at]
            # Without a free row, the next one to come makes a new table, and this one can be handed out.
            self._table, self._free = self._table[: len(at)], np.empty(0, np.int64)
            self._parts = [_SamplePart(np.arange(len(at)), known)]

    @property
    def rows(self) -> Rows:
        """What is known of each sampled row."""
        self._settle()
        return self._parts[0].known if self._parts else Rows(np.empty(0, np.uint64))

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def taken(self) -> int:
        """How many sequences are in the sample."""
        return len(self.rows.starts())

    def spectra(self) -> SequenceSpectra:
        """The spectra of the sampled sequences, computed once."""
        if self._spectra is None:
            self._spectra = SequenceSpectra.of_rows(self.values, self.rows)
        return self._spectra

    def to_usable_rows(self) -> UsableRows:
        """The sampled rows, for other statistics."""
        return prepare_rows(self.values, self.rows)

    def check(self, other: Sample) -> None:
        """Refuse what cannot be merged."""
        if (self.size, self.seed) != (other.size, other.seed):
            raise MergeError(
                f"cannot merge samples of (size, seed) {(self.size, self.seed)} and {(other.size, other.seed)}."
            )
        self._check(other.d, other.rows)

    def __add__(self, other: Sample) -> Sample:
        self.check(other)
        result = Sample(self.d, self.size, self.seed, self.sequences + other.sequences)
        if self.n or other.n:
            known = _join([part.rows for part in (self, other) if part.n])
            order = result._staying(known)
            # Only rows that stay are moved, straight to their places: touching new memory is what a merge costs.
            result._table = _pick_rows(self.values, other.values, order)
            result._parts = [_SamplePart(np.arange(len(order)), known.take(order))]
        return result

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        facts = np.array([self.d, self.size, self.seed, self.sequences], dtype=np.int64)
        return {"facts": facts, "values": self.values} | _columns(self.rows)

    def compact_arrays(self, rows: int, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """A smaller sample that this one holds, as `encode_rows` stores it.

        Args:
            rows: How many rows at most; the last sequence may go beyond, as in every sample.
            mean: Of all rows of the layer, (d,).
        """
        size = min(rows, self.size)
        starts = self.rows.starts()
        # The sequences are in the order of their hash, so the smaller sample is their beginning.
        later = starts[np.searchsorted(starts, size) :]
        n = int(later[0]) if len(later) else self.n
        facts = np.array([self.d, size, self.seed, self.sequences], dtype=np.int64)
        known = {name: _narrow(column[:n]) for name, column in _columns(self.rows).items()}
        return {"facts": facts} | encode_rows(self.values[:n], mean) | known

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Sample:
        """The state that `arrays` or `compact_arrays` returned."""
        d, size, seed, sequences = require(arrays, "facts", np.int64, (4,), least=0, most=MOST).tolist()
        values = (
            decode_rows(arrays) if "half" in arrays else require(arrays, "values", _REAL, (None, d), within=LARGEST)
        )
        is_sample = d > 0 and size > 0 and values.shape[1] == d
        require_consistent(is_sample, f"the saved sample of width {d} has size {size}")
        known = _read_known(arrays, len(values))
        require_consistent(len(known.starts()) <= sequences, f"the saved sample holds more than {sequences} sequences")
        result = cls(d, size, seed, sequences)
        if len(values):
            result._take(values, known)
            result._settle()
        return result


def _read_known(arrays: Mapping[str, NDArray[Any]], n: int) -> Rows:
    """What is known of n rows, from a file; narrow numbers become as wide as in memory."""
    columns: dict[str, Any] = {}
    for name, types in _KNOWN.items():
        if name in arrays or name == "sequence":
            columns[name] = require(arrays, name, types, (n,)).astype(types[0], copy=False)
    return Rows(**columns)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as int32 where that holds them."""
    small = column.dtype == np.int64 and not (np.abs(column) >= 2**31).any()
    return column.astype(np.int32) if small else column


def _pick_rows(one: NDArray[Any], other: NDArray[Any], which: NDArray[np.int64]) -> NDArray[Any]:
    """Rows of two tables by their numbers, those of the other after those of the one, some at a time."""
    table = np.empty((len(which), one.shape[1]), np.result_type(*(part for part in (one, other) if len(part))))
    for rows in slice_rows(len(which), _PICKED):
        numbers, part = which[rows], table[rows]
        here = numbers < len(one)
        part[here] = one[numbers[here]]
        part[~here] = other[numbers[~here] - len(one)]
    return table


def _columns(known: Rows) -> dict[str, NDArray[Any]]:
    """What is known of rows, by name."""
    columns = {name: getattr(known, name) for name in _KNOWN}
    return {name: column for name, column in columns.items() if column is not None}


def _join(parts: list[Rows]) -> Rows:
    """One after another; all of them know the same."""
    tables = [_columns(part) for part in parts]
    joined: dict[str, Any] = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return Rows(**joined)
