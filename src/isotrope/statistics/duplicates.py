"""Rows that occur more than once: a 128-bit hash of every row, and the ids of rows that share one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MergeError
from isotrope.statistics.saved_arrays import MOST, require, require_consistent
from isotrope.statistics.usable_rows import UsableRows

#: Row ids that are kept at most: 32 bytes for each, 128 MiB in all. Beyond, only hashes that begin with zero bits stay.
LIMIT = 1 << 22

#: Ids of one group of equal rows that are kept, the smallest.
MEMBERS = 100

#: Ids that may wait before they are sorted in.
_WAITING = 1 << 16

_BYTES = 16


class HashTable(NamedTuple):
    """Different rows by their hashes, (m, 2), ascending, with how often each occurs, (m,), and its smallest ids.

    ids: of each hash in turn the first min(count, MEMBERS), ascending.
    """

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]
    ids: NDArray[np.uint64]

    @property
    def kept(self) -> NDArray[np.int64]:
        """How many ids of each hash are kept, (m,)."""
        return np.minimum(self.counts, MEMBERS)

    def select(self, which: NDArray[np.bool_]) -> HashTable:
        """The hashes of a mask."""
        return HashTable(self.hashes[which], self.counts[which], self.ids[np.repeat(which, self.kept)])


class DuplicateGroup(NamedTuple):
    """Equal rows: how many there are, and the smallest of their ids, ascending."""

    size: int
    ids: list[int]


@dataclass(eq=False)
class Duplicates:
    """Which rows are equal to others, over all rows, from one 128-bit hash (BLAKE2b) of each.

    A value with an empty element `Duplicates.empty(d)` and `+`; `+=` reuses memory. Rows are equal where all of their
    numbers are: -0.0 equals 0.0, and float32 numbers equal the same numbers in float64. Zero rows and rows with NaN
    are left out, as everywhere. Two different rows share a hash with a probability of 1e-24 among 10 million rows.

    Up to LIMIT ids all hashes are kept. Beyond, only those that begin with `level` zero bits are: equal rows stay or go
    together, so that the number of repeated rows is then estimated, with the standard error `error`.

    Attributes:
        d: Number of dimensions.
        rows: Number of rows seen.
        whole: Whether rows that occur once are kept too; without them there is no `+`.

    >>> from isotrope.statistics import prepare_rows
    >>> found = Duplicates.of(prepare_rows(np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [0.5, 0.5]])))
    >>> found.repeated, found.groups()
    (1, [DuplicateGroup(size=2, ids=[0, 2])])
    """

    d: int
    rows: int = 0
    whole: bool = True
    _level: int = 0
    _tables: list[HashTable] = field(default_factory=list)

    @classmethod
    def empty(cls, d: int) -> Duplicates:
        return cls(d)

    @classmethod
    def of(cls, rows: UsableRows) -> Duplicates:
        """The hashes of some rows."""
        hashes = hash_rows(rows.values)
        table = HashTable(hashes, np.ones(len(hashes), np.int64), rows.rows.sequence.copy())
        return cls(rows.values.shape[1], len(hashes), _tables=[table] if len(hashes) else [])

    def table(self) -> HashTable:
        """All hashes that are kept, in order."""
        if len(self._tables) != 1 or not _is_sorted(self._tables[0]):
            self._settle()
        return self._tables[0]

    def _settle(self) -> None:
        merged = _thin(_merge(self._tables), self._level)
        while len(merged.ids) > LIMIT:
            self._level += 1
            merged = _thin(merged, self._level)
        self._tables = [merged]

    @property
    def level(self) -> int:
        """One in 2^level different rows is kept."""
        self.table()
        return self._level

    @property
    def repeated(self) -> int:
        """How many rows are equal to one that comes before: the rows that could go without loss."""
        return round(float((self.table().counts - 1).sum()) * 2.0**self._level)

    @property
    def error(self) -> float:
        """Standard error of `repeated`; 0 while all hashes are kept."""
        more = (self.table().counts - 1).astype(np.float64)
        return math.sqrt((1.0 - 2.0**-self._level) * float(more @ more)) * 2.0**self._level

    def groups(self, most: int | None = None) -> list[DuplicateGroup]:
        """The groups of equal rows, the largest first and then by their first ids; most: how many."""
        found = self.table()
        begin = np.cumsum(found.kept) - found.kept
        several = np.flatnonzero(found.counts > 1)
        order = several[np.lexsort((found.ids[begin[several]], -found.counts[several]))][:most]
        kept = found.kept
        return [DuplicateGroup(int(found.counts[i]), found.ids[begin[i] : begin[i] + kept[i]].tolist()) for i in order]

    def check(self, other: Duplicates) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge hashes of rows of width {other.d} with rows of width {self.d}.")
        if not (self.whole and other.whole):
            raise MergeError("cannot merge the duplicates of a compact run; scan with --keep all.")

    def __add__(self, other: Duplicates) -> Duplicates:
        result = Duplicates(self.d, self.rows, self.whole, self._level, list(self._tables))
        result += other
        return result

    def __iadd__(self, other: Duplicates) -> Duplicates:
        self.check(other)
        self.rows += other.rows
        self._level = max(self._level, other._level)
        self._tables = [*self._tables, *other._tables]
        sizes = [len(table.ids) for table in self._tables]
        if sum(sizes) - max(sizes, default=0) > max(_WAITING, max(sizes, default=0)):
            self._settle()
        return self

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        table = self.table()
        facts = np.array([self.d, self.rows, self._level, self.whole], np.int64)
        return {"facts": facts, **table._asdict()}

    def compact_arrays(self) -> dict[str, NDArray[Any]]:
        """The same without rows that occur once."""
        table = self.table()
        return Duplicates(self.d, self.rows, False, self._level, [table.select(table.counts > 1)]).arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Duplicates:
        """The state that `arrays` or `compact_arrays` returned."""
        d, rows, level, whole = require(arrays, "facts", np.int64, (4,), least=0, most=MOST).tolist()
        hashes = require(arrays, "hashes", np.uint64, (None, 2))
        counts = require(arrays, "counts", np.int64, (len(hashes),), least=1, most=MOST)
        ids = require(arrays, "ids", np.uint64, (int(np.minimum(counts, MEMBERS).sum()),))
        table = HashTable(hashes, counts, ids)
        counted = int(counts.sum())
        fits = counted <= rows if level or not whole else counted == rows
        require_consistent(
            d > 0 and level <= 64 and whole in (0, 1) and fits and _is_sorted(table),
            "the saved hashes of rows are not in order",
        )
        return cls(d, rows, bool(whole), level, [table])


def hash_rows(values: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """The 128-bit BLAKE2b hash of the numbers of each row, (n, d) -> (n, 2).

    Rows that float32 holds exactly are hashed as float32, so that the type in which they come does not matter.
    """
    digests = []
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(values.astype(np.float32, copy=False) + np.float32(0.0))  # no -0.0
    exact = np.ones(len(values), bool) if values.dtype == np.float32 else (narrow == values).all(axis=1)
    wide = None if exact.all() else np.ascontiguousarray(values + 0.0)
    for i in range(len(values)):
        row = narrow[i] if wide is None or exact[i] else wide[i]
        digests.append(hashlib.blake2b(row, digest_size=_BYTES).digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)


def _is_sorted(table: HashTable) -> bool:
    """Whether hashes ascend, each once."""
    first, second = table.hashes.T
    above = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] > second[:-1]))
    return bool(above.all())


def _thin(table: HashTable, level: int) -> HashTable:
    """Only the hashes that begin with so many zero bits."""
    return table if level == 0 else table.select(table.hashes[:, 0] >> np.uint64(64 - level) == 0)


def _merge(tables: list[HashTable]) -> HashTable:
    """One table in order, from any number of tables in any order."""
    hashes, counts, ids = (np.concatenate(parts) for parts in zip(_NOTHING, *tables, strict=True))
    by_id = np.concatenate([np.repeat(table.hashes, table.kept, axis=0) for table in (_NOTHING, *tables)])
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    first = _find_starts(hashes[order])
    summed = np.add.reduceat(counts[order], first) if len(first) else counts
    at = np.lexsort((ids, by_id[:, 1], by_id[:, 0]))
    begin = _find_starts(by_id[at])
    rank = np.arange(len(at)) - np.repeat(begin, np.diff(np.append(begin, len(at))))
    return HashTable(hashes[order[first]], summed, ids[at[rank < MEMBERS]])


def _find_starts(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where each different hash begins among hashes in order, (n, 2) -> (m,)."""
    new = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.flatnonzero(np.append(np.ones(min(len(ordered), 1), bool), new))


_NOTHING = HashTable(np.empty((0, 2), np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64))
