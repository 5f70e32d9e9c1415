"""Files of tables whose rows hold a list of numbers, or its base64: parquet and arrow (IPC file, stream, feather)."""

from __future__ import annotations

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
from isotrope.sources.vectors.base64_columns import DTYPE, FIELD, decode_rows, is_text
from isotrope.sources.vectors.other_columns import table_columns
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix, listing, pick

#: With these, pyarrow reads a row group piece by piece; by default it loads the whole chunk of a column.
_PARQUET_STREAMING = {"buffer_size": 1 << 20, "pre_buffer": False}

_IPC_FILE_MAGIC = b"ARROW1"

#: Types whose values may be long, and are numbered before they become labels.
_TEXTS = ("string", "large_string", "binary", "large_binary")

#: Record batches from the one that holds row `start` on (or before), each with its first row's number.
_Batches: TypeAlias = Callable[[int, int], Iterator[tuple[int, Any]]]

#: The numbers (m, width) of a column: its name, the number of its first row, its values and the width.
_Read: TypeAlias = Callable[[str, int, Any, int], NDArray[Any]]


def open_parquet(path: Any, column: str | None, group_by: str | None) -> list[Block]:
    """The list column of a parquet file, a path or one that is remote, read by row groups in batches."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(_start_reader(path)) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    column = choose_column(path, schema, column, group_by)
    batches = partial(_parquet_batches, path, _columns(column, group_by), group_by)
    found = column_block(path, schema, rows, column, group_by, batches)
    others = partial(_parquet_batches, path, [name for name in schema.names if name != column], None)
    return [replace(found, columns=partial(table_columns, schema, column, others))]


def open_ipc(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The list column of an arrow file or stream, memory-mapped; record batches are read one at a time."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    with pa.memory_map(str(path)) as file, _ipc_reader(file) as reader:
        schema, is_file = reader.schema, _is_file(reader)
    column = choose_column(path, schema, column, group_by)
    batches = partial(_ipc_batches, path)
    # The metadata of a file say how long it is, even if compressed; a stream has to be walked through.
    rows = ds.dataset(path, format="ipc").count_rows() if is_file else sum(batch.num_rows for _, batch in batches(0, 1))
    found = column_block(path, schema, rows, column, group_by, batches)
    return [replace(found, columns=partial(table_columns, schema, column, batches))]


def _start_reader(path: Any) -> Any:
    """A path as it is, a remote file opened."""
    begin = getattr(path, "begin", None)
    return path if begin is None else begin()


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
        if not _is_list(pick(str(path), column, types)) and not is_text(types[column]):
            raise InputError(
                f"{path} [{column}] holds {types[column]}, expected a list of numbers, or its base64, in each row: "
                f"choose another column of {listing(types)}."
            )
        return column
    found = [name for name, kind in types.items() if _is_list(kind) and _is_number(kind.value_type)]
    if len(found) > 1:
        raise InputError(
            f"{path} has several columns of lists of numbers ({', '.join(found)}), expected one: "
            "pick one with --column NAME (column=NAME in Python)."
        )
    if not found and FIELD in types and is_text(types[FIELD]):
        return FIELD
    if not found:
        raise InputError(
            f"{path} has the columns {listing(types)}, expected one with a list of numbers in each row: "
            "store each vector as a list, or name a column of base64 with --column."
        )
    return found[0]


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def column_block(path: Any, schema: Any, rows: int, column: str, group_by: str | None, batches: _Batches) -> Block:
    """The checked block of a column; its first row says the width where its type does not."""
    import pyarrow as pa

    name = f"{path} [{column}]"
    kind = schema.field(column).type
    if is_text(kind):
        first = _first_row(column, batches)
        width = 0 if first is None else decode_rows(name, 0, first).shape[1]
        check_matrix(name, (rows, width), DTYPE)
        return Block(name, rows, width, DTYPE, partial(_pieces, name, column, group_by, width, decode_rows, batches))
    if _is_list(kind.value_type):
        raise InputError(
            f"{name} holds {kind}, expected one list of numbers in each row: "
            "flatten or pool the lists of lists first, to one vector per row."
        )
    number = _is_number(kind.value_type)
    dtype = np.dtype(kind.value_type.to_pandas_dtype()).name if number else str(kind.value_type)
    fixed = pa.types.is_fixed_size_list(kind)
    width = kind.list_size if fixed else _first_length(name, column, batches)
    check_matrix(name, (rows, width), dtype)
    return Block(name, rows, width, dtype, partial(_pieces, name, column, group_by, width, list_matrix, batches))


def _first_length(name: str, column: str, batches: _Batches) -> int:
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


def _parquet_batches(
    path: Any, columns: list[str], labels: str | None, start: int, size: int
) -> Iterator[tuple[int, Any]]:
    """Record batches of some columns, each with the number of its first row; labels: the column of groups."""
    import pyarrow.parquet as pq

    # A label that repeats is kept once, not once for each row. Other types than text are read as ever.
    repeated = [] if labels is None else [labels]
    with pq.ParquetFile(_start_reader(path), read_dictionary=repeated, **_PARQUET_STREAMING) as file:
        groups = range(file.num_row_groups)
        ends = np.cumsum([file.metadata.row_group(group).num_rows for group in groups])
        first = int(np.searchsorted(ends, start, side="right"))
        row = int(ends[first - 1]) if first else 0
        for batch in file.iter_batches(size, row_groups=list(groups[first:]), columns=columns):
            yield row, batch
            row += batch.num_rows


def _ipc_batches(path: Path, start: int, size: int) -> Iterator[tuple[int, Any]]:
    """All record batches: those before `start` are only mapped, and `size` was fixed by the writer.

    All columns too: the option to include only some makes arrow copy what it would otherwise map.
    """
    import pyarrow as pa

    with pa.memory_map(str(path)) as file, _ipc_reader(file) as reader:
        row = 0
        for batch in _record_batches(reader):
            yield row, batch
            row += batch.num_rows


def _record_batches(reader: Any) -> Iterator[Any]:
    """The record batches of a stream, which is iterable, or of a file, which is not."""
    return map(reader.get_batch, range(reader.num_record_batches)) if _is_file(reader) else iter(reader)


def _is_file(reader: Any) -> bool:
    return hasattr(reader, "num_record_batches")


def _ipc_reader(file: Any) -> Any:
    """A reader of the arrow file or arrow stream that is open."""
    from pyarrow import ipc

    is_file = file.read(len(_IPC_FILE_MAGIC)) == _IPC_FILE_MAGIC
    file.seek(0)
    return ipc.open_file(file) if is_file else ipc.open_stream(file)
