"""One small generic registry, and the hint of an error about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from isotrope.errors import InputError

T = TypeVar("T")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A part of an error sentence: " (did you mean 'text'?)", or nothing.

    >>> did_you_mean("txet", ["text", "label"])
    " (did you mean 'text'?)"
    """
    close = difflib.get_close_matches(name, known, n=3)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


class Registry(Generic[T]):
    """Named things of one kind, in the order in which they were added.

    >>> colours = Registry[int]("colour")
    >>> colours.add("red", 1)
    >>> colours.get("red")
    1
    >>> colours.get("rad")
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no colour 'rad'; did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> None:
        if name in self._items:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._items[name] = item

    def get(self, name: str) -> T:
        if name in self._items:
            return self._items[name]
        close = difflib.get_close_matches(name, self._items, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(self._items)}."
        raise InputError(f"there is no {self.kind} {name!r}; {hint}")

    def names(self) -> list[str]:
        return list(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)
