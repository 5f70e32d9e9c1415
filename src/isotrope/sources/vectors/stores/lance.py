"""LanceDB: a column of vectors of a table, in the order that the table keeps, and a new table of repaired ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError, IsotropeError, StoreError
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.store import (
    Records,
    Store,
    check_not_empty,
    check_unchanged,
    choose_name,
    import_package,
    name_store_in_errors,
)
from isotrope.sources.vectors.table_files import choose_column, column_block, list_matrix

#: Rows that are read at a time where each brings a label along.
_LABELLED_ROWS = 256


@dataclass(frozen=True)
class _LanceTable:
    """One version of a LanceDB table, which stays as it is while others write to it.

    Attributes:
        rows: How many rows have a vector.
        required: The column without which rows do not count, None where all have it.
    """

    address: Address
    name: str
    version: int
    rows: int
    required: str | None

    def batches(self, columns: list[str] | None, start: int, size: int) -> Iterator[tuple[int, Any]]:
        """Record batches from row `start` on, of all columns where none are named."""
        with name_store_in_errors(self.address):
            table = _connect(self.address).open_table(self.name)
            table.checkout(self.version)
            query = table.search().offset(start)
            if columns is not None:
                query = query.select(columns)
            if self.required is not None:
                query = query.where(f"{_quote(self.required)} IS NOT NULL")
            row = start
            for batch in query.to_batches(size):
                yield row, batch
                row += batch.num_rows
            check_unchanged(self.address, self.rows, row)

    def batches_with_labels(self, columns: list[str], start: int, size: int) -> Iterator[tuple[int, Any]]:
        """The same with labels, which LanceDB repeats for each row: few rows at a time, so that long ones fit."""
        return self.batches(columns, start, min(size, _LABELLED_ROWS))


@dataclass(frozen=True)
class LanceColumn(Store):
    """A column of one version of a LanceDB table."""

    table: _LanceTable
    column: str
    others: tuple[str, ...]

    @property
    def column_names(self) -> list[str]:
        return list(self.others)

    def read_column(self, name: str, size: int) -> Iterator[list[Any]]:
        return (batch.column(name).to_pylist() for _, batch in self.table.batches([name], 0, size))

    @property
    def details(self) -> dict[str, Any]:
        return {"table": self.table.name, "version": self.table.version, "column": self.column}

    def records(self, size: int) -> Records:
        """Record batches of all columns, and the vectors among them."""
        for row, batch in self.table.batches(None, 0, size):
            yield batch, list_matrix(self.block.name, row, batch.column(self.column), self.block.width)

    def target(self, address: Address, column: str | None, width: int) -> LanceTarget:
        """A new table with all other columns of this one; column: the new name of the repaired one."""
        with name_store_in_errors(address, "opened"):
            if not _is_new(address) and address.named in _tables(_connect(address)):
                raise StoreError(f"{address} is there already, and is never written over; name a new table.")
            schema = _connect(self.address).open_table(self.table.name).schema
        new = column or self.column
        if new != self.column and new in schema.names:
            raise StoreError(f"{self.address} has a column {new!r} already; give another name with --output-column.")
        return LanceTarget(address, self.column, new, width)


@dataclass(frozen=True)
class LanceTarget:
    """A table that is not there yet. old, new: the names that the column of vectors had and gets."""

    address: Address
    old: str
    new: str
    width: int

    @property
    def words(self) -> str:
        return f"the column {self.new!r} of the new table {self.address}, beside all other columns"

    def write(self, records: Records) -> None:
        """Fill a new table beside the final one and put it in its place; on a server, remove it where that fails."""
        import pyarrow as pa

        new, name = _is_new(self.address), self.address.named
        beside = name if self.address.is_server else f"{name}.{os.getpid()}.part"
        batches = (self._batch(batch, vectors) for batch, vectors in records)
        first = next(batches, None)
        if first is None:
            raise InputError("there is no row to write.")
        refused: list[IsotropeError] = []

        def all_batches() -> Iterator[Any]:
            try:
                yield from chain([first], batches)
            except IsotropeError as error:  # Arrow would make its own words of it
                refused.append(error)
                raise

        with (
            name_store_in_errors(self.address, "written"),
            _remove_on_failure(Path(self.address.place) if new else None),
        ):
            database = _connect(self.address, new=True)
            table = database.create_table(beside, schema=first.schema)  # refused where another has made it meanwhile
            try:
                table.add(pa.RecordBatchReader.from_batches(first.schema, all_batches()))
                if beside != name:
                    os.rename(self._folder(beside), self._folder(name))
            except BaseException:
                if beside != name:
                    shutil.rmtree(self._folder(beside), ignore_errors=True)
                else:
                    database.drop_table(name)
                if refused:
                    raise refused[0] from None
                raise

    def _folder(self, name: str) -> Path:
        return Path(self.address.place) / f"{name}.lance"

    def _batch(self, batch: Any, vectors: Any) -> Any:
        """A record batch with the repaired vectors where the old ones were.

        What the schema says of embedding functions stays behind: they do not make repaired vectors.
        """
        import pyarrow as pa

        at = batch.schema.get_field_index(self.old)
        values = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(vectors)), self.width)
        columns = [values if i == at else column for i, column in enumerate(batch.columns)]
        schema = batch.schema.set(at, pa.field(self.new, values.type)).remove_metadata()
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def open_lancedb(address: Address, column: str | None, group_by: str | None) -> LanceColumn:
    """The column of vectors of a table; without a name, of the only table that there is."""
    database = _connect(address)
    name = choose_name(address, _tables(database), "table")
    table = database.open_table(name)
    schema, version = table.schema, int(table.version)
    column = choose_column(str(address), schema, column, group_by)
    left_out = table.count_rows(f"{_quote(column)} IS NULL")
    rows = table.count_rows() - left_out
    check_not_empty(f"{address} [{column}]", rows, left_out)
    found = _LanceTable(address, name, version, rows, column if left_out else None)
    batches = (
        partial(found.batches, [column]) if group_by is None else partial(found.batches_with_labels, [column, group_by])
    )
    block = column_block(str(address), schema, rows, column, group_by, batches)
    others = tuple(name for name in schema.names if name != column)
    return LanceColumn(address, block, left_out, found, column, others)


def _is_new(address: Address) -> bool:
    """Whether a database is a folder that is not there yet."""
    return not address.is_server and not Path(address.place).exists()


@contextmanager
def _remove_on_failure(folder: Path | None) -> Iterator[None]:
    """Leave no empty folder behind where nothing could be written into it."""
    try:
        yield
    except BaseException:
        if folder is not None:
            with suppress(OSError):
                folder.rmdir()
        raise


def _connect(address: Address, *, new: bool = False) -> Any:
    """The database. new: one that is not there is made."""
    lancedb = import_package("lancedb", "reading LanceDB")
    if not new and not address.is_server and not Path(address.place).is_dir():  # it would be made
        raise InputError(f"there is no folder {address.place!r}, expected a LanceDB database; check the path.")
    return lancedb.connect(address.place)


def _tables(database: Any) -> list[str]:
    """The names of all tables, which come by pages."""
    names: list[str] = []
    page = database.list_tables()
    while True:
        names += page.tables
        if not page.page_token:
            return names
        page = database.list_tables(page_token=page.page_token)


def _quote(column: str) -> str:
    """A column's name as LanceDB's filters take it."""
    if "`" in column:
        raise InputError(f"the column {column!r} has a ` in its name, which LanceDB cannot filter by; rename it.")
    return f"`{column}`"
