"""Files of rows, written piece by piece without knowing their number beforehand: npy, parquet, safetensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, StoreError
from isotrope.storage.files import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pieces = Iterable[NDArray[np.floating[Any]]]

#: The name that the rows have in files whose arrays or columns have names.
TENSOR, COLUMN = "vectors", "vector"

#: Rows of a parquet file's row group, so that small pieces do not make thousands of them.
_ROW_GROUP = 8192

#: More rows than any file has: what their number may take up in a header that is written before it is known.
_MOST = 10**18

_SAFETENSORS = {"float32": "F32", "float64": "F64"}


@dataclass(frozen=True, eq=False)
class Columns:
    """What a table holds beside its vectors.

    Attributes:
        schema: The schema of the whole table, of pyarrow.
        vectors: The name of the column of vectors.
        read: Gives record batches of the named columns in the order of the rows, of at most about so many rows:
            (size, names) -> batches.
    """

    schema: Any
    vectors: str
    read: Callable[[int, list[str]], Iterator[Any]]

    @property
    def names(self) -> list[str]:
        """The names of the other columns."""
        return [name for name in self.schema.names if name != self.vectors]


def check_target(path: Path) -> None:
    """Refuse a file that is there already, has no folder to be in, or whose ending names no format that is written."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"{str(path)!r} ends in {path.suffix!r}, expected {', '.join(_WRITERS)}: name the file so.")
    if path.exists():
        what = "a folder" if path.is_dir() else "a file that is there already"
        raise StoreError(f"{str(path)!r} is {what}, which is never written over; choose another name.")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into; make it first.")


def write_rows(path: Path, pieces: Pieces, columns: Columns | None = None) -> int:
    """Write pieces (m, k) of rows, float32 or float64, one after another into one file, at once or not at all.

    Memory: one piece (parquet: a row group).

    Args:
        path: The new file; the ending of its name says the format.
        pieces: Rows, in order.
        columns: What stands beside the rows and is written with them, in the same order; only parquet has room for it.

    Returns:
        The number of rows.

    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count = write_rows(Path(folder) / "rows.npy", iter([np.ones((2, 3)), np.zeros((1, 3))]))
    ...     count, np.load(Path(folder) / "rows.npy").shape
    (3, (3, 3))
    """
    check_target(path)
    rest = iter(pieces)
    first = next(rest, None)
    if first is None:
        raise InputError("there is no row to write.")
    count = 0

    def count_rows() -> Iterator[NDArray[np.floating[Any]]]:
        nonlocal count
        for piece in chain([first], rest):
            count += len(piece)
            yield piece

    write = _WRITERS[path.suffix.lower()]
    if write is _write_parquet and columns is not None:
        write = partial(_write_parquet, columns=columns)
    write_atomically(path, lambda temporary: write(temporary, first.shape[1], first.dtype, count_rows()), new=True)
    return count


def _write_npy(path: Path, width: int, dtype: np.dtype[Any], pieces: Pieces) -> None:
    from numpy.lib import format as npy

    def head(rows: int) -> bytes:
        import io

        buffer = io.BytesIO()
        facts = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, width)}
        npy.write_array_header_1_0(buffer, facts)  # numpy leaves room for a growing number of rows
        return buffer.getvalue()

    _write_behind(path, head, pieces)


def _write_safetensors(path: Path, width: int, dtype: np.dtype[Any], pieces: Pieces) -> None:
    def facts(rows: int) -> str:
        end = rows * width * dtype.itemsize
        return json.dumps(
            {TENSOR: {"dtype": _SAFETENSORS[dtype.name], "shape": [rows, width], "data_offsets": [0, end]}}
        )

    room = -(-len(facts(_MOST)) // 8) * 8

    def head(rows: int) -> bytes:
        return room.to_bytes(8, "little") + facts(rows).ljust(room).encode()

    _write_behind(path, head, pieces)


def _write_behind(path: Path, head: Callable[[int], bytes], pieces: Pieces) -> None:
    """Rows behind a header that is as long for any number of rows, and is written again when that is known."""
    rows = 0
    with path.open("wb") as file:
        file.write(head(0))
        for piece in pieces:
            rows += len(piece)
            file.write(piece.data if piece.flags.c_contiguous else piece.tobytes())
        file.seek(0)
        file.write(head(rows))


def _write_parquet(
    path: Path, width: int, dtype: np.dtype[Any], pieces: Pieces, columns: Columns | None = None
) -> None:
    """Rows in a table of their own, or in the place of the vectors of one, with its other columns as they are."""
    import pyarrow as pa
    from pyarrow import parquet

    kind = pa.list_(pa.from_numpy_dtype(dtype), width)
    # Numbers that are all different gain nothing by a dictionary, and next to nothing by compression.
    compression = "none" if columns is None else "snappy"
    table = columns or Columns(pa.schema([(COLUMN, kind)]), COLUMN, lambda size, names: iter(()))
    # What a library noted of the old vectors, such as their type, no longer holds.
    facts = {key: value for key, value in (table.schema.metadata or {}).items() if key != b"huggingface"}
    fields = [pa.field(field.name, kind) if field.name == table.vectors else field for field in table.schema]
    schema = pa.schema(fields, metadata=facts)
    # pyarrow itself opens no file whose name is not UTF-8.
    with (
        path.open("wb") as file,
        parquet.ParquetWriter(file, schema, use_dictionary=table.names or False, compression=compression) as writer,
    ):
        take = _make_reader(table)
        for group in _regroup(pieces):
            others = take(len(group))
            values = pa.FixedSizeListArray.from_arrays(pa.array(group.ravel()), width)
            arrays = [values if name == table.vectors else others[name] for name in schema.names]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _make_reader(columns: Columns) -> Callable[[int], Any]:
    """A function that gives the next so many rows of the other columns."""
    import pyarrow as pa

    schema = pa.schema([columns.schema.field(name) for name in columns.names])
    rest, batches = pa.Table.from_batches([], schema), columns.read(_ROW_GROUP, columns.names)

    def take(count: int) -> Any:
        nonlocal rest
        if not columns.names:
            return {}
        parts, found = [rest], len(rest)
        while found < count:
            batch = next(batches, None)
            if batch is None:
                raise InputError("the table was changed while it was read: it has fewer rows than vectors; run again.")
            parts.append(pa.Table.from_batches([batch]).cast(schema))
            found += batch.num_rows
        joined = pa.concat_tables(parts)
        rest = joined.slice(count)
        return joined.slice(0, count)

    return take


def _regroup(pieces: Pieces) -> Iterator[NDArray[np.floating[Any]]]:
    """Pieces joined until they are large enough for a row group."""
    import numpy as np

    waiting: list[NDArray[np.floating[Any]]] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= _ROW_GROUP:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


_WRITERS: dict[str, Callable[[Path, int, np.dtype[Any], Pieces], None]] = {
    ".npy": _write_npy,
    ".parquet": _write_parquet,
    ".safetensors": _write_safetensors,
}
