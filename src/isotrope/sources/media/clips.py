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


def group_by_shape(clips: Iterable[Clip], size: int, *, in_order: bool = False) -> Iterator[list[Clip]]:
    """Batches of at most `size` clips of one shape; in_order: only of those that come one after the other.

    Nothing is filled up to share a batch, so that a row is what the model gives for its clip alone.

    >>> import numpy as np
    >>> made = [Clip(i, None, {"x": np.zeros((1, n))}) for i, n in enumerate((3, 3, 2, 3, 3))]
    >>> [[clip.id for clip in batch] for batch in group_by_shape(made, 3)]
    [[0, 1, 3], [2], [4]]
    >>> [[clip.id for clip in batch] for batch in group_by_shape(made, 3, in_order=True)]
    [[0, 1], [2], [3, 4]]
    """
    waiting: dict[tuple[Any, ...], list[Clip]] = {}
    count = 0
    for clip in clips:
        if in_order and clip.shape not in waiting:
            yield from waiting.values()
            waiting, count = {}, 0
        batch = waiting.setdefault(clip.shape, [])
        batch.append(clip)
        count += 1
        if len(batch) == size:
            count -= size
            yield waiting.pop(clip.shape)
        elif count >= 4 * size:  # the oldest shape goes first
            first = waiting.pop(next(iter(waiting)))
            count -= len(first)
            yield first
    yield from waiting.values()
