"""Archives of arrays, .npz: stored members memory-mapped, compressed ones inflated as they are read."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from isotrope.sources.vectors.array_files import blocks_of, check_size, npy_entry, npy_header
from isotrope.sources.vectors.row_blocks import PICKLED, Block, BlockEntry, dtype_label

#: Bytes of a member of an archive that are checked at a time.
_CHECKED = 1 << 20

#: Times that a byte of deflate can become longer.
_MOST_INFLATED = 1_032

#: Bytes of the dictionary of LZMA's largest preset.
_LARGEST_DICTIONARY = 64 << 20


def open_npz(path: Path, column: str | None, group_by: str | None) -> list[Block]:
    """The arrays of a .npz file."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        entries = {
            member.filename.removesuffix(".npy"): _member_entry(path, archive, member, raw)
            for member in archive.infolist()
            if member.filename.endswith(".npy")
        }
    return blocks_of(path, entries, column, group_by)


def _member_entry(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, raw: IO[bytes]) -> BlockEntry:
    if member.compress_type == zipfile.ZIP_STORED:
        start = _seek_data(member, raw)
        entry = npy_entry(path, raw, min(start + member.file_size, path.stat().st_size))
        _check_sum(member, raw, start)
        return entry
    if member.file_size > _MOST_INFLATED * (member.compress_size + 1):
        raise ValueError(f"{member.filename} claims {member.file_size} bytes, packed in {member.compress_size}")
    if member.compress_type == zipfile.ZIP_LZMA:
        _check_dictionary(member, raw)
    with archive.open(member) as file:
        shape, fortran, dtype = npy_header(file)
        label = PICKLED if dtype.hasobject else dtype_label(dtype)
        check_size(math.prod(shape) * dtype.itemsize, member.file_size - file.tell())
    opened = _inflate if fortran else _inflating
    return BlockEntry(shape, label, partial(opened, path, member))


def _seek_data(member: zipfile.ZipInfo, raw: IO[bytes]) -> int:
    """Go to where the data of a member begin, and return that place."""
    # The local header may be longer than the central one says, so its own lengths count.
    raw.seek(member.header_offset + 26)
    name_length, extra_length = struct.unpack("<HH", raw.read(4))
    return raw.seek(member.header_offset + 30 + name_length + extra_length)


def _check_dictionary(member: zipfile.ZipInfo, raw: IO[bytes]) -> None:
    """Refuse a member packed by LZMA that asks for more memory to unpack it than any preset of LZMA does."""
    _seek_data(member, raw)
    (size,) = struct.unpack("<5xI", raw.read(9))  # behind a version, the length of the properties and one of them
    if size > _LARGEST_DICTIONARY:
        raise ValueError(f"{member.filename} asks for {size} bytes to be unpacked")


def _check_sum(member: zipfile.ZipInfo, raw: IO[bytes], start: int) -> None:
    """Refuse a stored member that is not as it was written, which inflating would notice and mapping does not."""
    raw.seek(start)
    left, found = member.file_size, 0
    while left > 0 and (piece := raw.read(min(left, _CHECKED))):
        left, found = left - len(piece), zlib.crc32(piece, found)
    if left or found != member.CRC:
        raise ValueError(f"{member.filename} is damaged: its checksum differs")


class _ArchiveRows:
    """Slices of an array that is inflated from its beginning on, each after the one before; memory: one slice."""

    def __init__(self, file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._file, self._shape, self._dtype, self._row = file, shape, dtype, 0

    def __getitem__(self, part: slice) -> NDArray[Any]:
        bytes_of_row = math.prod(self._shape[1:]) * self._dtype.itemsize
        self._skip((part.start - self._row) * bytes_of_row)
        data = self._file.read((part.stop - part.start) * bytes_of_row)
        check_size((part.stop - part.start) * bytes_of_row, len(data))
        self._row = part.stop
        return np.frombuffer(data, self._dtype).reshape(-1, *self._shape[1:])

    def _skip(self, count: int) -> None:
        while count > 0 and (found := self._file.read(min(count, 1 << 20))):
            count -= len(found)


@contextmanager
def _open_member(path: Path, member: zipfile.ZipInfo) -> Iterator[Any]:
    """A member, without reading the list of all members again, which is slow where there are thousands of them."""
    with path.open("rb") as raw:
        _seek_data(member, raw)
        with zipfile.ZipExtFile(raw, "r", member) as file:
            yield file


@contextmanager
def _inflating(path: Path, member: zipfile.ZipInfo) -> Iterator[_ArchiveRows]:
    with _open_member(path, member) as file:
        shape, _, dtype = npy_header(file)
        yield _ArchiveRows(file, shape, dtype)


def _inflate(path: Path, member: zipfile.ZipInfo) -> AbstractContextManager[NDArray[Any]]:
    with _open_member(path, member) as file:
        return nullcontext(npy.read_array(file, allow_pickle=False))
