"""What a pass over a source adds up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from isotrope.sources.batch import Batch

if TYPE_CHECKING:
    from typing_extensions import Self


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
