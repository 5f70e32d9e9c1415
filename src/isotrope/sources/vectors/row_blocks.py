"""A block: rows of one width, readable in pieces from any row on, and the columns that stand beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, IsotropeError
from isotrope.registry import did_you_mean
from isotrope.sources.batch import Groups
from isotrope.storage.row_files import COLUMN, Columns

T = TypeVar("T")

#: Values (m, d) in the stored type, possibly a view on a file, and the groups (m,) of their rows.
Piece: TypeAlias = tuple[NDArray[Any], Groups | None]

#: Types that float32 holds without loss; the others are read as float64.
NARROW = {"float16", "bfloat16", "float32", "int8", "int16", "uint8", "uint16"}
WIDE = {"float64", "int32", "int64", "uint32", "uint64"}
INTEGERS = {name for name in NARROW | WIDE if "int" in name}

#: Stands for the dtype of an array of Python objects in a file: reading one would unpickle, which runs code.
PICKLED = "pickled objects"

#: Stands for the dtype of an HDF5 dataset whose numbers are in other files, which may be anything on this machine.
ELSEWHERE = "numbers of other files"

#: Types of arrays that become columns.
_COLUMN_TYPES = {*NARROW, *WIDE, "bool", "text"} - {"bfloat16"}

_SHAPE_ADVICE = {
    0: "it is a single number",
    1: "call reshape(1, -1) if it is one vector, or reshape(-1, 1) if it is many numbers",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Rows (rows, width) of one array or column; `pieces(start, size)` reads from row `start` on.

    Nothing stays open between reads, so that a folder of many thousand files can be a source. `columns` gives what
    stands beside the rows in the same file, None where nothing does.
    """

    name: str
    rows: int
    width: int
    dtype: str
    pieces: Callable[[int, int], Iterator[Piece]]
    columns: Callable[[], Columns] | None = None


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """One array of any shape, in memory or in a file; `open` gives something that slices like an array."""

    shape: tuple[int, ...]
    dtype: str
    open: Callable[[], AbstractContextManager[Any]]

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"


def dtype_label(dtype: np.dtype[Any]) -> str:
    """The name of a dtype as messages and `describe` show it.

    >>> dtype_label(np.dtype(">f4")), dtype_label(np.dtype("<U7"))
    ('float32', 'text')
    """
    return {"U": "text", "S": "bytes", "O": "object"}.get(dtype.kind, str(dtype.name))


def check_matrix(name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse what is not a matrix (n, d) of real numbers with at least one row and one column.

    >>> check_matrix("x.npy", (5,), "float32")
    Traceback (most recent call last):
    isotrope.errors.InputError: x.npy has shape (5,), expected (rows, columns): call reshape(1, -1) if it \
is one vector, or reshape(-1, 1) if it is many numbers.
    """
    if dtype == PICKLED:
        raise InputError(
            f"{name} holds pickled objects, which are refused for safety because loading them can run code; "
            "save plain numbers instead: np.save(path, np.stack(rows).astype('float32'), allow_pickle=False)."
        )
    if dtype == ELSEWHERE:
        raise InputError(
            f"{name} keeps its numbers in other files (HDF5's external or virtual storage), which are not opened; "
            "copy them into one file, for example with h5repack, or name another dataset with --column."
        )
    if dtype not in NARROW | WIDE:
        raise InputError(
            f"{name} holds values of type {dtype}, expected real numbers (floats or integers): "
            "convert it first, for example with array.astype('float32')."
        )
    if len(shape) != 2:
        advice = _SHAPE_ADVICE.get(len(shape), "flatten or pool it first, to one vector per row")
        raise InputError(f"{name} has shape {shape}, expected (rows, columns): {advice}.")
    if min(shape) < 1:  # damaged files announce negative numbers
        missing = "rows" if shape[0] < 1 else "columns"
        raise InputError(
            f"{name} has shape {shape}, that is no {missing}, expected at least one row and one column: "
            "check the step that wrote it."
        )


def format_listing(named: Mapping[str, object], most: int = 12) -> str:
    """The names with what they stand for, cut where a file holds hundreds.

    >>> format_listing({"a": "(2, 3) float32", "b": "(2,) int64"})
    'a (2, 3) float32, b (2,) int64'
    >>> format_listing({"a": 1, "b": 2, "c": 3}, most=1)
    'a 1 and 2 more'
    """
    shown = ", ".join(f"{name} {what}" for name, what in list(named.items())[:most])
    return shown + (f" and {len(named) - most} more" if len(named) > most else "")


def pick(where: str, name: str, named: Mapping[str, T]) -> T:
    """The item of this name, or an error that lists what there is."""
    if name in named:
        return named[name]
    hint = did_you_mean(name, named)
    raise InputError(f"{where} has no column {name!r}{hint}; it holds {format_listing(named) or 'nothing'}.")


@contextmanager
def name_file_in_errors(name: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into one InputError.

    The parsers of six formats raise some twenty kinds of errors, so all are caught here, and chained;
    MemoryError too, which damaged lengths provoke.
    """
    try:
        yield
    except IsotropeError:
        raise
    except UnicodeEncodeError as error:
        raise InputError(f"{name} cannot be read, because its name is not UTF-8; rename it.") from error
    except Exception as error:
        raise InputError(
            f"{name} cannot be read ({first_line(error)}); "
            "check that it is complete and what its extension says, or write it again."
        ) from error


def first_line(error: Exception) -> str:
    """The first line of what an error says, without its last dot; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def entry_block(name: str, entry: BlockEntry, groups: BlockEntry | None = None, offset: int = 0) -> Block:
    """The block of a two-dimensional entry; its first row has the group number `offset` of `groups`."""
    check_matrix(name, entry.shape, entry.dtype)
    rows, width = entry.shape
    return Block(name, rows, width, entry.dtype, partial(_entry_pieces, entry, groups, offset))


def _entry_pieces(entry: BlockEntry, groups: BlockEntry | None, offset: int, start: int, size: int) -> Iterator[Piece]:
    with entry.open() as values, groups.open() if groups else nullcontext() as labels:
        for low in range(start, entry.shape[0], size):
            high = min(low + size, entry.shape[0])
            piece = np.asarray(values[low:high])
            yield (
                _widen_bfloat16(piece) if entry.dtype == "bfloat16" else piece,
                None if labels is None else Groups.of_numbers(np.asarray(labels[offset + low : offset + high])),
            )


def _widen_bfloat16(bits: NDArray[Any]) -> NDArray[np.float32]:
    """The float32 values of 16-bit patterns: a bfloat16 is the upper half of a float32.

    >>> _widen_bfloat16(np.array([0x3F80, 0xC000], np.uint16))
    array([ 1., -2.], dtype=float32)
    """
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def memory_block(data: Any) -> Block:
    """The rows of an array or a tensor in memory."""
    torch = sys.modules.get("torch")  # a tensor can only exist where torch is imported already
    if torch is not None and isinstance(data, torch.Tensor):
        dtype = str(data.dtype).removeprefix("torch.")
        return entry_block("the tensor", BlockEntry(tuple(data.shape), dtype, partial(_tensor_rows, data.detach())))
    if isinstance(data, np.ma.MaskedArray):
        raise InputError("got a masked array, expected plain numbers: call filled(np.nan), or remove the masked rows.")
    if not isinstance(data, np.ndarray):
        raise InputError(
            f"got an object of type {type(data).__name__}, expected a numpy array, a torch tensor, a path "
            "or a list of paths: convert it first, for example with np.asarray."
        )
    return entry_block("the array", BlockEntry(data.shape, dtype_label(data.dtype), partial(nullcontext, data)))


def _tensor_rows(tensor: Any) -> AbstractContextManager[NDArray[Any]]:
    """The tensor as an array in memory; numpy has no bfloat16, so that goes by its bits."""
    import torch

    bits = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return nullcontext(bits.numpy(force=True))


def table_columns(schema: Any, vectors: str, batches: Callable[[list[str], int], Iterator[tuple[int, Any]]]) -> Columns:
    """The columns of a table. batches: its record batches, (names, size), each with the number of its first row."""
    return Columns(schema, vectors, partial(_read_table, batches))


def _read_table(
    batches: Callable[[list[str], int], Iterator[tuple[int, Any]]], size: int, names: list[str]
) -> Iterator[Any]:
    for _, batch in batches(names, size) if names else ():
        kept = batch.select(names)
        kept.validate(full=True)  # arrow trusts the offsets of a damaged file
        yield kept


def array_columns(entries: Mapping[str, BlockEntry], vectors: str) -> Columns:
    """Arrays of one dimension that are as long as the matrix of vectors, as columns before it."""
    import pyarrow as pa

    rows = entries[vectors].shape[0]
    beside = {name: entry for name, entry in entries.items() if entry.shape == (rows,) and entry.dtype in _COLUMN_TYPES}
    types = {}
    for name, entry in beside.items():
        with entry.open() as values:
            types[name] = pa.array(_to_arrow(np.asarray(values[0:1]))).type
    schema = pa.schema([*types.items(), (vectors, pa.list_(pa.float32()))])
    return Columns(schema, vectors, partial(_read_arrays, beside, rows))


def _read_arrays(entries: Mapping[str, BlockEntry], rows: int, size: int, names: list[str]) -> Iterator[Any]:
    import pyarrow as pa

    for low in range(0, rows, size) if names else ():
        arrays = []
        for name in names:
            with entries[name].open() as values:
                arrays.append(pa.array(_to_arrow(np.asarray(values[low : min(low + size, rows)]))))
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _to_arrow(values: Any) -> Any:
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
    return Columns(schema, vectors, partial(_read_all, tables))


def _has(table: Columns, field: Any) -> bool:
    there = table.schema.get_field_index(field.name)
    return there >= 0 and field.name != table.vectors and bool(table.schema.field(there).type == field.type)


def _read_all(tables: Sequence[Columns], size: int, names: list[str]) -> Iterator[Any]:
    for table in tables:
        yield from table.read(size, names)
