"""Sources of rows: what every source has, and the one pass over its rows."""

from __future__ import annotations

import copy
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.sources.batch import Batch
from isotrope.sources.reduction import Reduction
from isotrope.storage.row_files import Columns

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.sources.vectors.stores.store import Store

T = TypeVar("T")
R = TypeVar("R", bound=Reduction)

#: Called with the units (rows or texts) done so far and their total, None where unknown.
Progress: TypeAlias = Callable[[int, "int | None"], None]


class Source(ABC):
    """Anything that yields batches of rows, always the same ones in the same order.

    A subclass sets `layers`, `width` and `unit`, and defines `total`, `batches` and `describe`. All else has a default.

    Attributes:
        layers: The layers that the batches carry, in order.
        width: The number of dimensions d of its rows.
        unit: What `total` counts: "rows", "texts", "images" or "sounds".
        batch_rows: Rows of a batch, where that is fixed.
        dtype: The type of the rows, where it is known before they are read.
        loaded: The model that makes the rows, None without one.
        left_out: Files that are not read because they cannot be, and why.
    """

    layers: list[Layer]
    width: int
    unit: str
    batch_rows: int | None = None
    dtype: np.dtype[Any] | None = None
    loaded: Any = None
    left_out: Mapping[str, str] = MappingProxyType({})
    _progress: Progress | None = None

    @property
    @abstractmethod
    def total(self) -> int | None:
        """How many units there are in all, None where unknown."""

    @abstractmethod
    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return plain data for provenance: kind, model, files with sizes and hashes, options."""

    @property
    def layer_names(self) -> Mapping[Layer, str]:
        """What to call each layer, where there is more to say than its number."""
        return {}

    @property
    def parts(self) -> int:
        """Batches made from one forward pass: layers whose rows differ come apart."""
        return 1

    @property
    def columns(self) -> Columns | None:
        """What else the files hold of each row, None where they hold nothing."""
        return None

    @property
    def store(self) -> Store | None:
        """The store that all rows are from, None for anything else."""
        return None

    @property
    def engine(self) -> dict[str, Any]:
        """Where the rows are read, as plain data for provenance."""
        return {"name": "local"}

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """Return the text of token types, None where rows have no tokens."""
        return None

    def estimate_rows(self, *, rows: int, types: int, units: int) -> tuple[int, int]:
        """Estimate the rows and the token types of a layer from those that the first so many units gave."""
        return self.total or 0, 0

    @property
    def shard_size(self) -> int:
        """How many units a shard has; the last one may have fewer. By default one shard has them all."""
        return self.total or sys.maxsize

    def shard(self, number: int) -> Iterator[Batch]:
        """Yield the batches of one shard, none beyond the end.

        One after another, the shards hold the batches of the whole pass; they can be read in any order and by anyone.
        """
        return iter(()) if number else self.batches()

    def with_progress(self, progress: Progress) -> Self:
        """Return the same source, which tells how far `map` and `reduce` have come.

        >>> from isotrope.sources.vectors.source import ArraySource
        >>> source = ArraySource(np.ones((3, 2)), batch_rows=2)
        >>> list(source.with_progress(lambda done, total: print(done, "of", total)).map(lambda batch: len(batch.rows)))
        2 of 3
        3 of 3
        [2, 1]
        """
        told = copy.copy(self)
        told._progress = progress
        return told

    def map(self, function: Callable[[Batch], T]) -> Iterator[T]:
        """Yield what a function makes of each batch, in order, wherever the source is read.

        Args:
            function: What is made of one batch. It must not keep the batch: only one is held at a time.
        """
        done = 0
        for batch in self.batches():
            done += batch.counts.get(self.unit, 0)
            made = function(batch)
            del batch  # before the next one is made
            yield made
            if self._progress is not None:
                self._progress(done, self.total)

    def reduce(self, result: R, *, keep: Callable[[R], None] | None = None, every: float = 60.0) -> R:
        """Add all batches to a result, from where it stands, in one pass and wherever the source is read.

        Args:
            result: What is filled: statistics that are empty, or those of a pass that was interrupted.
            keep: Called with the result about every `every` seconds, to write a checkpoint.
            every: Seconds between checkpoints.

        Returns:
            The filled result.
        """
        done, last = result.count_done(self.unit), time.monotonic()
        with result.open_pool(len(self.layers)) as pool:
            for batch in self.batches(start=result.batches):
                done += batch.counts.get(self.unit, 0)
                result.update(batch, pool)
                del batch  # before the next one is made: only one is held at a time
                if self._progress is not None:
                    self._progress(done, self.total)
                if keep is not None and time.monotonic() - last >= every:
                    keep(result)
                    last = time.monotonic()
            result.settle()
        return result
