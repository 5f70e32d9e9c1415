"""Files of tables whose rows hold a list of numbers, or its base64: parquet and arrow (IPC file, stream, feather)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.batch import Groups, shorten_label
from isotrope.sources.record_batches import (
    ipc_batches,
    is_ipc_file,
    open_ipc_reader,
    parquet_batches,
    start_reader,
)
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix, format_listing, pick, table_columns

#: What services call the field that holds a vector; a column of text with another name has to be named.
_FIELD = "embedding"

#: Types whose values may be long, and are numbered before they become labels.
_TEXTS = ("string", "large_string", "binary", "large_binary")

#: Record batches from the one that holds row `start` on (or before), each with its first row's number.
_Batches: TypeAlias = Callable[[int, int], Iterator[tuple[int, Any]]]

#: The numbers (m, width) of a column: its name, the number of its first row, its values and the width.
_Read: TypeAlias = Callable[[str, int, Any, int], NDArray[Any]]


def open_parquet(path: Any, column: str | None, group_by: str | None) -> list[Block]:
    """The list column of a parquet file, a path or one that is remote, read by row groups in batches."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(start_reader(path)) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    column = choose_column(path, schema, column, group_by)
    batches = partial(parquet_batches, path, _columns(column, group_by), group_by)
    found = column_block(path, schema, rows, column, group_by, batches)
    return [replace(found, columns=partial(table_columns, schema, column, partial(_read_parquet_columns, path)))]


def open_ipc(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The list column of an arrow file or stream, memory-mapped; record batches are read one at a time."""
    import pyarrow.dataset as ds

    with open_ipc_reader(path) as reader:
        schema, is_file = reader.schema, is_ipc_file(reader)
    column = choose_column(path, schema, column, group_by)
    batches = partial(ipc_batches, path)
    # The metadata of a file say how long it is, even if compressed; a stream has to be walked through.
    rows = ds.dataset(path, format="ipc").count_rows() if is_file else sum(batch.num_rows for _, batch in batches(0, 1))
    found = column_block(path, schema, rows, column, group_by, batches)
    return [replace(found, columns=partial(table_columns, schema, column, partial(_read_ipc_columns, path)))]


def _read_parquet_columns(path: Any, names: list[str], size: int) -> Iterator[tuple[int, Any]]:
    return parquet_batches(path, names, None, 0, size)


def _read_ipc_columns(path: Path, names: list[str], size: int) -> Iterator[tuple[int, Any]]:
    return ipc_batches(path, 0, size)


def _columns(column: str, group_by: str | None) -> list[str]:
    return [column] if group_by in (None, column) else [column, group_by]


def choose_column(path: Any, schema: Any, column: str | None, group_by: str | None) -> str:
    """The name of the column of vectors: the given one, or the only one whose rows are lists of numbers, or base64."""
    import pyarrow as pa

    types: dict[str, Any] = {field.name: field.type for field in schema}
    if group_by is not None and pa.types.is_nested(pick(str(path), group_by, types)):
        raise InputError(
            f"{path} [{group_by}] holds {types[group_by]}, expected one value per row to group by: "
            "choose another column."
        )
    if column is not None:
        if not _is_list(pick(str(path), column, types)) and not _is_text(types[column]):
            raise InputError(
                f"{path} [{column}] holds {types[column]}, expected a list of numbers, or its base64, in each row: "
                f"choose another column of {format_listing(types)}."
            )
        return column
    found = [name for name, kind in types.items() if _is_list(kind) and _is_number(kind.value_type)]
    if len(found) > 1:
        raise InputError(
            f"{path} has several columns of lists of numbers ({', '.join(found)}), expected one: "
            "pick one with --column NAME (column=NAME in Python)."
        )
    if not found and _FIELD in types and _is_text(types[_FIELD]):
        return _FIELD
    if not found:
        raise InputError(
            f"{path} has the columns {format_listing(types)}, expected one with a list of numbers in each row: "
            "store each vector as a list, or name a column of base64 with --column."
        )
    return found[0]


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: Any) -> bool:
    """Whether an arrow type is that of text, which may hold base64."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def column_block(path: Any, schema: Any, rows: int, column: str, group_by: str | None, batches: _Batches) -> Block:
    """The checked block of a column; its first row says the width where its type does not."""
    name = f"{path} [{column}]"
    kind = schema.field(column).type
    read: _Read
    if _is_text(kind):
        read, dtype = decode_base64, "float32"
        first = _first_row(column, batches)
        width = 0 if first is None else decode_base64(name, 0, first).shape[1]
    elif _is_list(kind.value_type):
        raise InputError(
            f"{name} holds {kind}, expected one list of numbers in each row: "
            "flatten or pool the lists of lists first, to one vector per row."
        )
    else:
        read, number = list_matrix, _is_number(kind.value_type)
        dtype = np.dtype(kind.value_type.to_pandas_dtype()).name if number else str(kind.value_type)
        width = _list_width(name, kind, column, batches)
    check_matrix(name, (rows, width), dtype)
    return Block(name, rows, width, dtype, partial(_pieces, name, column, group_by, width, read, batches))


def _list_width(name: str, kind: Any, column: str, batches: _Batches) -> int:
    """The length of the lists of a column: its type says it, or the first row; 0 without rows."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    first = _first_row(column, batches)
    if first is None:
        return 0
    if first.null_count:
        raise _null_row(name, 0)
    return len(first[0])


def _first_row(column: str, batches: _Batches) -> Any | None:
    """The first row of a column as an array of one, None where there is none."""
    for _, batch in batches(0, 1):
        if batch.num_rows:
            return _validate(batch, column).column(column).slice(0, 1)
    return None


def _pieces(
    name: str, column: str, group_by: str | None, width: int, read: _Read, batches: _Batches, start: int, size: int
) -> Iterator[Piece]:
    columns = _columns(column, group_by)
    for row, batch in batches(start, size):
        if row + batch.num_rows <= start:
            continue
        _validate(batch, *columns)
        for low in range(max(start - row, 0), batch.num_rows, size):
            part = batch.slice(low, size)
            values = read(name, row + low, part.column(column), width)
            yield values, None if group_by is None else _groups(part.column(group_by))


def _validate(batch: Any, *columns: str) -> Any:
    """The batch, its offsets checked: arrow trusts those of a damaged file and would read outside of it."""
    for column in columns:
        batch.column(column).validate(full=True)
    return batch


def list_matrix(name: str, row: int, lists: Any, width: int) -> NDArray[Any]:
    """The numbers (m, width) of a list array whose first row is number `row`; null numbers become NaN.

    >>> import pyarrow as pa
    >>> list_matrix("x", 0, pa.array([[1.0, 2.0], [3.0, None]]), 2)
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    import pyarrow.compute as pc

    if lists.null_count:
        raise _null_row(name, row + pc.index(lists.is_null(), True).as_py())
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    ragged = np.flatnonzero(lengths != width)
    if len(ragged):
        raise InputError(
            f"row {row + ragged[0]} of {name} (counted from 0) has {lengths[ragged[0]]} numbers, expected "
            f"{width} as in row 0: remove that row or make all lists equally long."
        )
    values: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, width)


def decode_base64(name: str, row: int, texts: Any, width: int | None = None) -> NDArray[np.float32]:
    """The numbers (m, width) of base64 texts, as embedding services send them: little-endian float32 numbers.

    The first text is of row number `row`, whose width counts where none is given.

    >>> import pyarrow as pa
    >>> decode_base64("x", 0, pa.array(["AACAPwAAAEA=", "AAAAAAAAAMA="]))
    array([[ 1.,  2.],
           [ 0., -2.]], dtype=float32)
    """
    rows = [_numbers(name, row + i, text) for i, text in enumerate(texts.to_pylist())]
    wanted = len(rows[0]) if width is None else width
    for i, numbers in enumerate(rows):
        if len(numbers) != wanted:
            raise InputError(
                f"row {row + i} of {name} (counted from 0) has {len(numbers)} numbers, expected {wanted} as in row 0: "
                "remove that row or ask the service for vectors of one length."
            )
    return np.stack(rows)


def _numbers(name: str, row: int, text: str | None) -> NDArray[np.float32]:
    try:
        data = base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or len(data) % 4:
        shown = "null" if text is None else repr(text[:40])
        raise InputError(
            f"row {row} of {name} (counted from 0) is {shown}, expected base64 of float32 numbers: "
            "choose another column, or store each vector as a list."
        )
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False)


def _null_row(name: str, row: int) -> InputError:
    return InputError(
        f"row {row} of {name} (counted from 0) is null, expected a list of numbers: remove the rows without a vector."
    )


def _groups(column: Any) -> Groups:
    """The values of a column as labels, "null" where there is none; of text that repeats, each is looked at once.

    >>> import pyarrow as pa
    >>> _groups(pa.array(["de", None, "de"])).tolist(), _groups(pa.array([1, 2])).tolist()
    (['de', 'null', 'de'], ['1', '2'])
    """
    import pyarrow as pa

    if str(column.type) in _TEXTS:
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return Groups.of(_label(value) for value in column)
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    used, codes = np.unique(codes, return_inverse=True)
    # A code of -1, which stands for null, comes first where there is one.
    values = column.dictionary.take(pa.array(used[used >= 0]))
    labels = Groups.of(chain(["null"] * int((used < 0).sum()), (_label(value) for value in values)))
    return Groups(labels.codes[codes], labels.labels)


def _label(value: Any) -> str:
    found = value.as_py()
    return "null" if found is None else shorten_label(str(found))
