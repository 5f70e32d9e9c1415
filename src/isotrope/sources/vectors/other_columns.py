"""What stands beside vectors in their files, row by row: other columns of tables, arrays as long as the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.sources.vectors.row_blocks import NARROW, WIDE
from isotrope.storage.row_files import COLUMN, Columns

if TYPE_CHECKING:
    from isotrope.sources.vectors.row_blocks import BlockEntry

#: Types of arrays that become columns.
_KEPT = {*NARROW, *WIDE, "bool", "text"} - {"bfloat16"}


def table_columns(schema: Any, vectors: str, batches: Callable[[int, int], Iterator[tuple[int, Any]]]) -> Columns:
    """The columns of a table. batches: its record batches, (start, size), each with the number of its first row."""
    return Columns(schema, vectors, partial(_read, [name for name in schema.names if name != vectors], batches))


def _read(names: list[str], batches: Callable[[int, int], Iterator[tuple[int, Any]]], size: int) -> Iterator[Any]:
    for _, batch in batches(0, size) if names else ():
        kept = batch.select(names)
        kept.validate(full=True)  # arrow trusts the offsets of a damaged file
        yield kept


def array_columns(entries: Mapping[str, BlockEntry], vectors: str) -> Columns:
    """Arrays of one dimension that are as long as the matrix of vectors, as columns before it."""
    import pyarrow as pa

    rows = entries[vectors].shape[0]
    beside = {name: entry for name, entry in entries.items() if entry.shape == (rows,) and entry.dtype in _KEPT}
    types = {}
    for name, entry in beside.items():
        with entry.open() as values:
            types[name] = pa.array(_plain(np.asarray(values[0:1]))).type
    schema = pa.schema([*types.items(), (vectors, pa.list_(pa.float32()))])
    return Columns(schema, vectors, partial(_read_arrays, beside, rows))


def _read_arrays(entries: Mapping[str, BlockEntry], rows: int, size: int) -> Iterator[Any]:
    import pyarrow as pa

    for low in range(0, rows, size) if entries else ():
        arrays = []
        for entry in entries.values():
            with entry.open() as values:
                arrays.append(pa.array(_plain(np.asarray(values[low : min(low + size, rows)]))))
        yield pa.RecordBatch.from_arrays(arrays, names=list(entries))


def _plain(values: Any) -> Any:
    """Values that arrow takes: text as Python strings, numbers in native byte order."""
    return values.tolist() if values.dtype.kind in "US" else values.astype(values.dtype.newbyteorder("="))


def join_columns(tables: Sequence[Columns]) -> Columns:
    """The columns that several tables have in common, by name and type, one table after another."""
    first, *others = tables
    if not others:
        return first
    import pyarrow as pa

    vectors = first.vectors if all(table.vectors == first.vectors for table in others) else COLUMN
    fields = [
        field.with_name(vectors) if field.name == first.vectors else field
        for field in first.schema
        if field.name == first.vectors or all(_has(table, field) for table in others)
    ]
    schema = pa.schema(fields, metadata=first.schema.metadata)
    names = [field.name for field in fields if field.name != vectors]
    return Columns(schema, vectors, partial(_read_all, tables, names))


def _has(table: Columns, field: Any) -> bool:
    there = table.schema.get_field_index(field.name)
    return there >= 0 and field.name != table.vectors and bool(table.schema.field(there).type == field.type)


def _read_all(tables: Sequence[Columns], names: list[str], size: int) -> Iterator[Any]:
    for table in tables:
        for batch in table.read(size) if names else ():
            yield batch.select(names)
