"""A source that tells how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Source
from isotrope.storage.row_files import Columns


def watched(source: Source, tell: Callable[[int, int | None], None]) -> Source:
    """The same source, which tells how far it has come, wherever it is read."""
    elsewhere: Callable[[Callable[[int, int | None], None]], Source] | None = getattr(source, "telling", None)
    return Watched(source, tell) if elsewhere is None else elsewhere(tell)


@dataclass(frozen=True)
class Watched:
    """The same batches as another source; tell: called with the units (rows or texts) done so far, and their total.

    >>> from isotrope.sources.vectors.source import ArraySource
    >>> watched = Watched(ArraySource(np.ones((3, 2)), batch_rows=2), lambda done, total: print(done, "of", total))
    >>> rows = [batch.layers[0] for batch in watched.batches()]
    2 of 3
    3 of 3
    """

    source: Source
    tell: Callable[[int, int | None], None]

    @property
    def layers(self) -> list[Layer]:
        return self.source.layers

    @property
    def width(self) -> int:
        return self.source.width

    @property
    def total(self) -> int | None:
        return self.source.total

    @property
    def unit(self) -> str:
        return self.source.unit

    @property
    def columns(self) -> Columns | None:
        return getattr(self.source, "columns", None)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on, each told of after it was used."""
        done, total = 0, self.total
        for batch in self.source.batches(start):
            done += batch.counts.get(self.unit, 0)
            yield batch
            del batch  # before the next one is made: only one is held at a time
            self.tell(done, total)

    def describe(self) -> dict[str, Any]:
        return self.source.describe()

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        return self.source.token_names(tokens)
