"""Shards: numbered ranges of a source's batches, the same ones whoever reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

#: Batches of a shard at most and at least; powers of two, so that a smaller shard divides a larger one.
MOST, _LEAST = 64, 4

#: Shards that an input is cut into at least, while they are not too small: enough for some dozens of workers.
_WANTED = 32


def batches_per_shard(batches: int | None, least: int = _LEAST) -> int:
    """How many batches make a shard of an input with so many, None where unknown; nothing else decides it.

    least: where batches take so little time that fewer are not worth sending.

    >>> [batches_per_shard(n) for n in (1, 600, 10**6, None)]
    [4, 16, 64, 64]
    """
    if batches is None:
        return MOST
    size = least
    while size < MOST and batches >= 2 * size * _WANTED:
        size *= 2
    return size


class Cursor(Generic[T]):
    """Ranges of what can only be read from its beginning; one that lies ahead is reached without beginning anew.

    >>> cursor = Cursor(lambda: iter("abcdef"))
    >>> cursor.between(1, 3), cursor.between(4, 9), cursor.between(0, 1)
    (['b', 'c'], ['e', 'f'], ['a'])
    """

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin = begin
        self._items: Iterator[T] = iter(())
        self._at: int | None = None

    def between(self, first: int, last: int) -> list[T]:
        """The items from number `first` up to and without `last`, fewer where they end before."""
        at = self._at
        self._at = None  # where reading fails, the next range begins anew
        if at is None or at > first:
            self._items, at = self._begin(), 0
        for _ in islice(self._items, first - at):
            pass
        found = list(islice(self._items, last - first))
        self._at = last
        return found
