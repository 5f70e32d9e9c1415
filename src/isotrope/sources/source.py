"""Sources of rows: what every source has, the one pass over its rows, and the shards that they are read in."""

from __future__ import annotations

import copy
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.sources.batch import Batch
from isotrope.sources.row_names import RowName, RowNames
from isotrope.storage.row_files import Columns

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.sources.vectors.stores.store import Store

T = TypeVar("T")
R = TypeVar("R", bound="Reduction")

#: Called with the units (rows or texts) done so far and their total, None where unknown.
Progress: TypeAlias = Callable[[int, "int | None"], None]

#: Batches of a shard at most and at least; powers of two, so that a smaller shard divides a larger one.
MOST, _LEAST = 64, 4

#: Shards that an input is cut into at least, while they are not too small: enough for some dozens of workers.
_WANTED = 32


class Reduction(ABC):
    """A value with an empty element and `+` that is filled batch by batch, see `Source.reduce`.

    Attributes:
        batches: How many batches it holds already; a pass goes on after them.
        shards: How many whole shards it holds already, where a source is read in shards.
        skipped: Numbers of the shards that count as empty because they could not be read, and why.
    """

    batches: int = 0
    shards: int = 0
    skipped: Mapping[int, str] = MappingProxyType({})

    @abstractmethod
    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        """Add one batch; a pool may do some of the work meanwhile, which `settle` waits for."""

    @abstractmethod
    def empty(self, bars: Mapping[Any, int] | None = None) -> Self:
        """Return an empty one of the same settings; bars: see `sample_bars`."""

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    def settle(self) -> None:  # noqa: B027  # nothing to do by default
        """Finish what is under way, after which it can be sent, and read from several threads."""

    def open_pool(self, layers: int, threads: int | None = None) -> AbstractContextManager[Executor | None]:
        """Open the pool that helps with so many layers, None where there is none; threads: at most so many."""
        return nullcontext()

    def count_done(self, unit: str) -> int:
        """Count the units (rows, texts) of the source that it holds already, where it was resumed."""
        return 0

    def sample_bars(self) -> Mapping[Any, int]:
        """Return the bars of its samples: others that it is merged with need not keep rows above them."""
        return {}

    def note_shards(self, retried: int, skipped: Mapping[int, str] | None) -> None:  # noqa: B027  # as above
        """Record how many shards were read again and which were skipped, None where none may be."""

    def clear(self) -> None:  # noqa: B027  # as above
        """Let go of what it holds, once it was sent elsewhere."""


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
        row_names: Ids and texts of the sequences, which are rows where vectors are read; None without any.
    """

    layers: list[Layer]
    width: int
    unit: str
    batch_rows: int | None = None
    dtype: np.dtype[Any] | None = None
    loaded: Any = None
    left_out: Mapping[str, str] = MappingProxyType({})
    row_names: RowNames | None = None
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

    @property
    def has_names(self) -> bool:
        """Whether ids or texts of the rows are known."""
        return self.row_names is not None

    def check_names(self) -> None:
        """Check that ids and texts are there for all rows, and that no id repeats."""
        if self.row_names is not None:
            self.row_names.check()

    def find_names(self, rows: NDArray[np.uint64]) -> Mapping[int, RowName]:
        """Find the ids and texts of some sequences, by their numbers; nothing where rows have neither."""
        return {} if self.row_names is None else self.row_names.find(rows)

    def measure_texts(self, rows: NDArray[np.uint64]) -> Mapping[int, int]:
        """Measure the texts of some sequences in characters, by their numbers; nothing where texts are not known."""
        return {} if self.row_names is None else self.row_names.measure_texts(rows)

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
        copied = copy.copy(self)
        copied._progress = progress
        return copied

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
