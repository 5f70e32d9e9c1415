"""Merges the results of shards, in an order that depends only on their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from isotrope.sources.source import Reduction

T = TypeVar("T")
R = TypeVar("R", bound=Reduction)

#: Shards, or sums, that are added up at once.
FAN = 4

#: Levels of sums at least before the whole, and how often the whole, one addition after another, may be added to.
_LEVELS, _ADDITIONS = 2, 64


def count_levels(shards: int | None) -> int:
    """Levels of sums before the whole for so many shards, None where unknown.

    >>> [count_levels(n) for n in (None, 1, 1_024, 1_025, 4_096, 16_384, 10**6)]
    [2, 2, 2, 3, 3, 4, 7]
    """
    found = _LEVELS
    while shards is not None and shards > _ADDITIONS * FAN**found:
        found += 1
    return found


class Tree(Generic[T]):
    """Parts added up as they come: four and four on each level, and four of the last level to the whole.

    Args:
        join: Adds up parts.
        levels: Levels of sums before the whole.
        whole: What is there already; parts that are still in a level are not in it.

    >>> tree = Tree(lambda *those: "(" + "".join(those) + ")", 2)
    >>> [tree.add(part) for part in "abcdefghijklmnopqr"].index(True)
    15
    >>> tree.finish()
    '(((abcd)(efgh)(ijkl)(mnop))(qr))'
    """

    def __init__(self, join: Callable[..., T], levels: int, whole: T | None = None) -> None:
        self._join, self.whole = join, whole
        self._levels: list[list[T]] = [[] for _ in range(levels)]

    def add(self, part: T) -> bool:
        """Take the next part; whether the whole has grown."""
        *below, last = self._levels
        for level in below:
            level.append(part)
            if len(level) < FAN:
                return False
            part = self._join(*level)
            level.clear()
        last.append(part)
        if len(last) < FAN:
            return False
        self._grow(last)
        return True

    def finish(self) -> T | None:
        """The sum of all parts, None where there were none."""
        rest: list[T] = []
        *below, last = self._levels
        for level in below:
            rest = [self._sum(*level, *rest)] if level or rest else []
        if last or rest:
            self._grow([*last, *rest])
        return self.whole

    def _grow(self, sums: list[T]) -> None:
        self.whole = self._sum(*([] if self.whole is None else [self.whole]), *sums)
        sums.clear()

    def _sum(self, *those: T) -> T:
        return those[0] if len(those) == 1 else self._join(*those)


def merge(*parts: R) -> R:
    """The sum of parts in their order, none of which is changed; settled, because what arrives cannot be written to."""
    first, *others = parts
    if not others:
        return first
    total = first + others[0]
    for part in others[1:]:
        total += part
    total.settle()
    return total


class Merger:
    """A worker that merges the results of other workers."""

    def ping(self) -> None:
        """Return at once: an answer shows that the worker is alive."""

    def merge(self, *parts: R) -> tuple[Any, R]:
        """Return the hash limits of the merged samples, by which readers drop rows early, and the merged result."""
        total = merge(*parts)
        return total.sample_bars(), total


def merge_bars(known: Any, more: Any) -> Any:
    """Merge the hash limits of samples: the lower one counts.

    >>> merge_bars({"a": 5, "b": 7}, {"a": 6, "b": 3}), merge_bars(None, {"a": 6})
    ({'a': 5, 'b': 3}, {'a': 6})
    """
    if not known or not more:
        return known or more
    return {key: min(bars[key] for bars in (known, more) if key in bars) for key in known | more}
