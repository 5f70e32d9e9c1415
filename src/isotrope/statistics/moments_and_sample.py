"""Moments and a sample of the rows of one space."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotrope.sources.batch import Batch
from isotrope.sources.source import Reduction
from isotrope.statistics.moments import Moments
from isotrope.statistics.sample import Sample
from isotrope.statistics.usable_rows import block

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(eq=False)
class MomentsAndSample(Reduction):
    """Moments of all rows of a source of one layer and a sample of them, for `Source.reduce`.

    >>> import numpy as np
    >>> from isotrope.sources.vectors.source import ArraySource
    >>> found = ArraySource(np.eye(3)).reduce(MomentsAndSample.empty_for(3, sample=2))
    >>> found.moments.n, found.sample.n
    (3, 2)
    """

    moments: Moments
    sample: Sample

    @classmethod
    def empty_for(cls, width: int, sample: int, seed: int = 0) -> Self:
        """Return an empty one for rows of so many dimensions, which samples so many rows."""
        return cls(Moments.empty(width), Sample.empty(width, sample, seed))

    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        for rows in batch.layers.values():
            usable = block(rows, batch.rows)
            self.moments += Moments.of(usable)
            self.sample.add(usable)

    def empty(self, bars: Mapping[Any, int] | None = None) -> Self:
        return self.empty_for(self.sample.d, self.sample.size, self.sample.seed)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.moments + other.moments, self.sample + other.sample)

    def settle(self) -> None:
        self.sample.settle()
