"""What a source yields: rows of one or more layers, with what is known of each row, its group too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.compute.arrays import to_numpy
from isotrope.layers import Layer

#: Characters of a label at most, and hexadecimal digits of the hash that ends one that was longer.
LONGEST_LABEL, HASH_DIGITS = 200, 16


def shorten_label(label: str) -> str:
    """Return the label, or where it is too long its beginning and a hash of the whole, 200 characters in all.

    Labels that differ stay different, however long they are.

    >>> shorten_label("de")
    'de'
    >>> len(shorten_label("a" * 100_000)), shorten_label("a" * 100_000) == shorten_label("a" * 100_001)
    (200, False)
    """
    if len(label) <= LONGEST_LABEL:
        return label
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
    return f"{label[: LONGEST_LABEL - HASH_DIGITS - 1]}…{digest}"


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The groups of n rows. Memory: eight bytes per row, and each label once.

    Attributes:
        codes: (n,) int64, the place of each row's label in `labels`.
        labels: Distinct labels of at most 200 characters each; some may belong to no row.

    >>> groups = Groups.of(["b", "a", "b"])
    >>> groups.codes, groups[1:].tolist()
    (array([0, 1, 0]), ['a', 'b'])
    >>> [(label, rows.tolist()) for label, rows in groups.members()]
    [('a', [1]), ('b', [0, 2])]
    """

    codes: NDArray[np.int64]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[Any]) -> Groups:
        """Number the labels of rows, one for each row; they are taken one at a time."""
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(shorten_label(str(label)), len(numbers)) for label in labels]
        return cls(np.array(codes, np.int64), tuple(numbers))

    @classmethod
    def of_numbers(cls, values: NDArray[Any]) -> Groups:
        """Number the values (n,) of an array of integers, whose digits are the labels."""
        found, codes = np.unique(values, return_inverse=True)
        return cls(codes.astype(np.int64, copy=False), tuple(map(str, found.tolist())))

    @classmethod
    def join(cls, parts: Sequence[Groups]) -> Groups:
        """Return the groups of several parts, one after the other."""
        known = cls.of(label for part in parts for label in part.labels)
        starts = np.cumsum([0, *(len(part.labels) for part in parts)])
        codes = [known.codes[start:][part.codes] for start, part in zip(starts, parts, strict=False)]
        return cls(np.concatenate(codes), known.labels)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Groups:
        """Return the groups of the rows that a slice, a mask or an index array selects."""
        return Groups(self.codes[rows], self.labels)

    def __iter__(self) -> Iterator[str]:
        return (self.labels[code] for code in self.codes.tolist())

    def tolist(self) -> list[str]:
        """Return the label of each row."""
        return list(self)

    def repeat(self, counts: NDArray[np.integer[Any]]) -> Groups:
        """Return each row's group as often as `counts`, (n,), says."""
        return Groups(np.repeat(self.codes, counts), self.labels)

    def members(self) -> list[tuple[str, NDArray[np.int64]]]:
        """Return the labels that rows have, sorted, with the places of their rows, ascending."""
        order = np.argsort(self.codes, kind="stable")
        ordered = self.codes[order]
        parts = np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1) if len(order) else []
        return sorted(((self.labels[self.codes[part[0]]], part) for part in parts), key=lambda member: member[0])


class Types(NamedTuple):
    """Token types, ascending (k,); where each begins (k + 1,) in the rows in the order (n,) of their types."""

    ids: NDArray[np.int64]
    begin: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """What is known of each row of a batch, shared by all its layers.

    Attributes:
        sequence: (n,) uint64, the stable id of the row's sequence: the same number however the input is
            split, ordered or batched. Rows of one sequence are adjacent and come in one batch. Rows that
            belong to no sequence (plain vectors) are each a sequence of their own.
        token: (n,) int64, the row's token type.
        position: (n,) int64, its place in the sequence.
        special: (n,) bool, true for tokens that the tokenizer added.
        group: (n,), value of the `group_by` column; one label for each row is taken too.
    """

    sequence: NDArray[np.uint64]
    token: NDArray[np.int64] | None = None
    position: NDArray[np.int64] | None = None
    special: NDArray[np.bool_] | None = None
    group: Groups | None = None

    def __post_init__(self) -> None:
        if self.group is not None and not isinstance(self.group, Groups):
            object.__setattr__(self, "group", Groups.of(self.group))

    def __len__(self) -> int:
        return len(self.sequence)

    def take(self, keep: NDArray[Any]) -> Rows:
        """The rows selected by a mask or an index array."""
        known: tuple[Any, ...] = (self.token, self.position, self.special, self.group)
        return Rows(self.sequence[keep], *(None if column is None else column[keep] for column in known))

    def starts(self) -> NDArray[np.int64]:
        """Index of the first row of each sequence, shape (number of sequences,)."""
        return self._starts

    # Worked out once for all layers of a batch.
    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        if not len(self.sequence):
            return np.empty(0, np.int64)
        new = np.flatnonzero(self.sequence[1:] != self.sequence[:-1]) + 1
        return np.concatenate(([0], new)).astype(np.int64)

    @cached_property
    def types(self) -> Types:
        """The token types of the rows; there must be tokens."""
        assert self.token is not None
        order = np.argsort(self.token, kind="stable")
        ordered = self.token[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(order) else order
        return Types(ordered[first], np.append(first, len(order)), order)

    @cached_property
    def by_type(self) -> sparse.csr_array:
        """Which rows are of which token type, (k, n): a product with it sums rows up by type."""
        types, n = self.types, len(self)
        return sparse.csr_array((np.ones(n), types.order, types.begin), shape=(len(types.ids), n))


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of some layers, each (n, d), numpy arrays or torch tensors of floats.

    Attributes:
        layers: The rows of each layer.
        rows: What is known of each row, shared by all layers.
        counts: What the source has to report of this batch, added up over the run, such as
            {"sequences": 32, "truncated_sequences": 1, "truncated_tokens": 40}.
    """

    layers: Mapping[Layer, Any]
    rows: Rows
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_numpy(self) -> Batch:
        """Return the same batch as numpy arrays, which can go anywhere."""
        return Batch({layer: to_numpy(rows) for layer, rows in self.layers.items()}, self.rows, self.counts)
