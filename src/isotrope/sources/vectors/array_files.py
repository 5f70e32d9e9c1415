"""Files of named or unnamed arrays: .npy, .safetensors and HDF5, read without loading them whole."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra
from isotrope.sources.vectors.row_blocks import (
    ELSEWHERE,
    INTEGERS,
    NARROW,
    PICKLED,
    WIDE,
    Block,
    BlockEntry,
    array_columns,
    dtype_label,
    entry_block,
    format_listing,
    pick,
)
from isotrope.sources.vectors.unreadable_files import check_safe_to_read

#: The limit of the safetensors library itself, checked before anything of that size is allocated.
MAX_SAFETENSORS_HEADER = 100_000_000

#: The limit of numpy itself, which it checks when it has read the header.
_MAX_NPY_HEADER = 10_000

#: Times that the numbers of an HDF5 file may be more than its bytes; what is declared and not there reads as zeros.
_MOST_UNPACKED = 10_000

#: Seconds that a list of the datasets of an HDF5 file may take, and bytes of the file for which it may take one more.
_SECONDS, _BYTES_A_SECOND = 3.0, 10_000_000

#: safetensors name -> (what it is, the numpy dtype of its bytes).
_SAFETENSORS_DTYPES = {
    "F64": ("float64", "<f8"),
    "F32": ("float32", "<f4"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", "<u2"),
    "I64": ("int64", "<i8"),
    "I32": ("int32", "<i4"),
    "I16": ("int16", "<i2"),
    "I8": ("int8", "|i1"),
    "U64": ("uint64", "<u8"),
    "U32": ("uint32", "<u4"),
    "U16": ("uint16", "<u2"),
    "U8": ("uint8", "|u1"),
    "BOOL": ("bool", "|b1"),
}


def open_npy(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The one array of a .npy file, memory-mapped."""
    check_no_names(f"{path} is a .npy file, which", column, group_by)
    with path.open("rb") as file:
        entry = npy_entry(path, file, path.stat().st_size)
    return [entry_block(str(path), entry)]


def open_safetensors(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The tensors of a .safetensors file, memory-mapped; bfloat16 included, without torch."""
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > min(size - 8, MAX_SAFETENSORS_HEADER):
            raise ValueError(f"its header claims {length} bytes, the file has {size}")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    _check_overlaps(header)
    entries = {name: _tensor_entry(path, name, header[name], 8 + length, size) for name in header}
    return blocks_of(path, entries, column, group_by)


def open_hdf5(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The datasets of an HDF5 file, by their path inside it."""
    _h5py()  # not only in the process that tries it
    size = path.stat().st_size
    # On some damaged files the library itself goes round in circles, where nothing can stop it.
    check_safe_to_read(str(path), partial(_hdf5_entries, path), _SECONDS + size / _BYTES_A_SECOND)
    return blocks_of(path, _hdf5_entries(path), column and column.strip("/"), group_by and group_by.strip("/"))


def _hdf5_entries(path: Path) -> dict[str, BlockEntry]:
    h5py = _h5py()
    entries: dict[str, BlockEntry] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            # The shape of an HDF5 "null dataspace" is None; it holds no rows either way.
            _check_declared(name, item, path.stat().st_size)
            dtype = ELSEWHERE if item.is_virtual or item.external else dtype_label(item.dtype)
            entries[name] = BlockEntry(item.shape or (), dtype, partial(_dataset, path, name))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return entries


def check_no_names(what: str, column: str | None, group_by: str | None) -> None:
    """Refuse `column` and `group_by` where there is one array without a name."""
    if group_by is not None:
        raise InputError(
            f"{what} holds no groups, so group_by={group_by!r} cannot be used: it works with a column of a "
            "parquet or arrow file, or a 1-D array of integers in a npz, safetensors or HDF5 file."
        )
    if column is not None:
        raise InputError(f"{what} holds one array without a name, so column={column!r} cannot be used: leave it out.")


def blocks_of(path: Path, entries: dict[str, BlockEntry], column: str | None, group_by: str | None) -> list[Block]:
    """The blocks of the chosen arrays, one after the other, with their groups."""
    groups = None if group_by is None else pick(str(path), group_by, entries)
    blocks: list[Block] = []
    rows = 0
    for name, entry in _choose(path, entries, column).items():
        blocks.append(entry_block(f"{path} [{name}]", entry, groups, offset=rows))
        rows += blocks[-1].rows
    if groups and (groups.dtype not in INTEGERS or groups.shape != (rows,)):
        raise InputError(
            f"{path} [{group_by}] is {groups}, expected ({rows},) integers to group by, one per row: "
            "number the groups, or use a parquet file, whose columns may hold text."
        )
    if len(blocks) == 1 and len(entries) > 1:
        (name,) = _choose(path, entries, column)
        return [replace(blocks[0], columns=partial(array_columns, entries, name))]
    return blocks


def _choose(path: Path, entries: dict[str, BlockEntry], column: str | None) -> dict[str, BlockEntry]:
    """The named array, or all matrices of numbers in name order where they have one width."""
    if column is not None:
        return {column: pick(str(path), column, entries)}
    matrices = {
        name: entry
        for name, entry in sorted(entries.items())
        if len(entry.shape) == 2 and entry.dtype in NARROW | WIDE | {ELSEWHERE}
    }
    if len({entry.shape[1] for entry in matrices.values()}) > 1:
        raise InputError(
            f"{path} holds arrays of different width ({format_listing(matrices)}), expected one width: "
            "pick one with --column NAME (column=NAME in Python)."
        )
    if not matrices and len(entries) != 1:
        raise InputError(
            f"{path} holds {format_listing(entries) or 'no arrays'}, "
            "expected a two-dimensional array of numbers: save one vector per row."
        )
    # A lone array that is no matrix is chosen too, for the message that says what is wrong with it.
    return matrices or entries


def npy_entry(path: Path, file: IO[bytes], end: int) -> BlockEntry:
    """The array whose .npy header starts where `file` stands and whose bytes end at or before `end`."""
    shape, fortran, dtype = npy_header(file)
    if dtype.hasobject:
        return BlockEntry(shape, PICKLED, nullcontext)
    offset = file.tell()
    check_size(math.prod(shape) * dtype.itemsize, end - offset)
    order: Literal["F", "C"] = "F" if fortran else "C"
    return BlockEntry(shape, dtype_label(dtype), partial(_map, path, dtype.str, offset, shape, order))


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array whose header begins where `file` stands."""
    # Version 3 exists only for structured dtypes with names beyond Latin-1, which are no vectors.
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in readers:
        raise ValueError(f"npy format version {version} is not supported")
    size = file.read(2 * version[0])
    length = int.from_bytes(size, "little")
    if length > _MAX_NPY_HEADER:
        raise ValueError(f"its header claims {length} bytes, expected at most {_MAX_NPY_HEADER}")
    shape, fortran, dtype = readers[version](io.BytesIO(size + file.read(length)))
    if any(n < 0 for n in shape):
        raise ValueError(f"its header claims the shape {shape}")
    return shape, fortran, dtype


def _tensor_entry(path: Path, name: str, tensor: dict[str, Any], data: int, size: int) -> BlockEntry:
    """The tensor of one safetensors header record, its offsets checked against its shape and the file."""
    code, shape, (start, end) = tensor["dtype"], tuple(tensor["shape"]), tensor["data_offsets"]
    label, stored = _SAFETENSORS_DTYPES.get(code, (code, ""))
    if not all(type(n) is int and n >= 0 for n in (*shape, start, end)):
        raise ValueError(f"tensor {name!r} has shape {shape} and offsets {start}, {end}")
    if stored and math.prod(shape) * np.dtype(stored).itemsize != end - start:
        raise ValueError(f"tensor {name!r} of shape {shape} and type {code} claims {end - start} bytes")
    check_size(end, size - data)
    return BlockEntry(shape, label, partial(_map, path, stored, data + start, shape, "C"))


def _check_overlaps(header: dict[str, Any]) -> None:
    """Refuse tensors that share bytes, by which a small file would hold any number of rows."""
    spans = sorted((*tensor["data_offsets"], name) for name, tensor in header.items())
    for (_, end, name), (start, _, other) in pairwise(spans):
        if start < end:
            raise ValueError(f"tensors {name!r} and {other!r} share bytes")


def _check_declared(name: str, dataset: Any, size: int) -> None:
    """Refuse a dataset whose shape claims far more than the file can hold, however it is packed."""
    declared = math.prod(dataset.shape or ()) * dataset.dtype.itemsize
    if declared > _MOST_UNPACKED * size:
        raise ValueError(f"{name} claims the shape {dataset.shape}, the file has {size} bytes")


def check_size(needed: int, there: int) -> None:
    """Refuse an array that needs more bytes than there are."""
    if needed > there:
        raise ValueError(f"it is cut short: {needed} bytes of numbers expected, {max(there, 0)} found")


def _map(
    path: Path, dtype: str, offset: int, shape: tuple[int, ...], order: Literal["F", "C"]
) -> AbstractContextManager[Any]:
    if order == "F":
        return nullcontext(np.memmap(path, dtype, "r", offset, shape, order))
    return nullcontext(FileRows(partial(_map_bytes, path), np.dtype(dtype), offset, shape))


def _map_bytes(path: Path, start: int, stop: int) -> NDArray[np.uint8]:
    """The bytes of a part of a file, mapped by itself: what was read does not stay with the process."""
    return np.memmap(path, np.uint8, "r", start, (stop - start,))


class FileRows:
    """Slices of an array in a file, each read when it is asked for.

    Args:
        read: Gives the bytes of the file from one place up to another.
        dtype: The type of the numbers.
        offset: Where the array begins.
        shape: Its shape.
    """

    def __init__(
        self, read: Callable[[int, int], Any], dtype: np.dtype[Any], offset: int, shape: tuple[int, ...]
    ) -> None:
        self._read, self._dtype, self._offset, self._shape = read, dtype, offset, shape

    def __getitem__(self, part: slice) -> NDArray[Any]:
        row = math.prod(self._shape[1:]) * self._dtype.itemsize
        data = self._read(self._offset + part.start * row, self._offset + part.stop * row)
        return np.frombuffer(data, self._dtype).reshape(-1, *self._shape[1:])


@contextmanager
def _dataset(path: Path, name: str) -> Iterator[Any]:
    with _h5py().File(path, "r") as file:
        yield file[name]


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("h5py", "files", "reading HDF5 files") from error
    return h5py
