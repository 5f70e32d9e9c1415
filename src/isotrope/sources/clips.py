"""One image, or one window of a sound, ready for a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Clip(NamedTuple):
    """What a model is given at once, and what becomes one sequence of rows.

    id: stable. inputs: tensors (1, ...) by name. share: how much of the input is real and not filled up.
    """

    id: int
    group: str | None
    inputs: dict[str, Any]
    share: float = 1.0

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(tuple(tensor.shape) for tensor in self.inputs.values())


def alike(clips: Iterable[Clip], size: int) -> Iterator[list[Clip]]:
    """Batches of at most `size` clips of one shape, in the order in which the clips come.

    Nothing is filled up to share a batch, so that a row is what the model gives for its clip alone.
    """
    waiting: dict[tuple[Any, ...], list[Clip]] = {}
    held = 0
    for clip in clips:
        batch = waiting.setdefault(clip.shape, [])
        batch.append(clip)
        held += 1
        if len(batch) == size:
            held -= size
            yield waiting.pop(clip.shape)
        elif held >= 4 * size:  # the oldest shape goes first
            first = waiting.pop(next(iter(waiting)))
            held -= len(first)
            yield first
    yield from waiting.values()
