"""The groups of rows: a number for each row and the label that each number stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    codes: (n,) int64, the place of each row's label in `labels`. labels: distinct, of at most 200 characters each; some
        may belong to no row.

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
        every = cls.of(label for part in parts for label in part.labels)
        starts = np.cumsum([0, *(len(part.labels) for part in parts)])
        codes = [every.codes[start:][part.codes] for start, part in zip(starts, parts, strict=False)]
        return cls(np.concatenate(codes), every.labels)

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
