"""A store: one column of vectors that is read in batches, and the new place that repaired ones are written to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, IsotropeError, MissingExtra
from isotrope.sources.vectors.row_blocks import Block, first_line
from isotrope.sources.vectors.stores.address import Address
from isotrope.storage.redaction import mask_secrets

#: What a store knows its rows by and keeps beside them, in its own form, and their vectors (m, d).
Records: TypeAlias = Iterable[tuple[Any, NDArray[np.floating[Any]]]]


class Target(Protocol):
    """A place that was not there, as it was found before anything is written."""

    @property
    def words(self) -> str:
        """What is written, in words."""

    def write(self, records: Records) -> None:
        """Write all records, or on any failure leave nothing; what was there before stays as it is."""


@dataclass(frozen=True)
class Store(ABC):
    """Vectors of one table, collection or index. Nothing stays open between calls.

    Attributes:
        address: Where it is.
        block: Its vectors in a stable order, those of rows that have one.
        left_out: How many rows have no vector.
    """

    address: Address
    block: Block
    left_out: int

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is recorded of it: plain data without secrets."""
        counts = {"rows": self.block.rows, "rows_without_vector": self.left_out}
        return {"path": str(self.address), "store": self.address.kind} | self.details | counts

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What is recorded of this kind of store in particular."""

    @abstractmethod
    def records(self, size: int) -> Records:
        """All rows in the order of the block, at most `size` at a time, with what is written back beside them."""

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """What a row can be named by, besides its number."""

    @abstractmethod
    def read_column(self, name: str, size: int) -> Iterator[list[Any]]:
        """The values of one of these columns in the order of the block, at most `size` at a time."""

    @abstractmethod
    def target(self, address: Address, column: str | None, width: int) -> Target:
        """The new place for repaired vectors of these rows; refused where it is there already."""


#: The module and the function that open each kind of store: (address, column, group_by) -> store.
_OPENERS = {
    "lancedb": ("lance", "open_lancedb"),
    "faiss": ("faiss_index", "open_faiss"),
    "qdrant": ("qdrant", "open_qdrant"),
    "pgvector": ("pgvector", "open_pgvector"),
}


def open_store(address: Address, column: str | None = None, group_by: str | None = None) -> Store:
    """The store at an address; column: which of its vectors, where it has several."""
    module, function = _OPENERS[address.kind]
    opener: Callable[[Address, str | None, str | None], Store]
    opener = getattr(import_module(f"isotrope.sources.vectors.stores.{module}"), function)
    with name_store_in_errors(address):
        return opener(address, column, group_by)


def import_package(name: str, what: str) -> Any:
    """The store's own library, or the command that installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(name.partition(".")[0], "stores", what) from None


@contextmanager
def name_store_in_errors(address: Address, what: str = "read") -> Iterator[None]:
    """Turn whatever a store's library raises into one sentence without secrets."""
    try:
        yield
    except IsotropeError:
        raise
    except Exception as error:
        raise InputError(f"{address} cannot be {what} ({mask_secrets(first_line(error))}).") from error


def check_unchanged(address: Address, announced: int, found: int) -> None:
    """Refuse a store that has other rows than when it was opened: row numbers would mean other rows."""
    if found != announced:
        raise InputError(
            f"{address} was changed while it was read: it had {announced:,} vectors and now gives {found:,}; run again."
        )


def choose_name(address: Address, names: list[str], what: str) -> str:
    """The table or collection that an address names, or the only one that there is."""
    if address.name in names:
        return address.name
    if address.name is None and len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{address} holds no {what}, expected at least one; check the place.")
    there = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    if address.name is None:
        raise InputError(f"{address} holds the {what}s {there}; put the name of one behind a #.")
    raise InputError(f"{address} names a {what} that is not there; there are {there}.")


def check_not_empty(name: str, rows: int, left_out: int) -> None:
    """Refuse a store without a single vector."""
    if not rows:
        without = f" with a vector, and {left_out:,} without" if left_out else ""
        raise InputError(f"{name} has no rows{without}; check the step that filled it.")
