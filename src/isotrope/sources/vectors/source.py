"""Vectors that someone already has: an array in memory, files of many formats, or a store, read in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Groups, Rows
from isotrope.sources.source import Source, batches_per_shard
from isotrope.sources.vectors.archives import open_npz
from isotrope.sources.vectors.array_files import check_no_names, open_hdf5, open_npy, open_safetensors
from isotrope.sources.vectors.remote import describe_remote, is_url, list_remote_files, open_url
from isotrope.sources.vectors.row_blocks import NARROW, Block, Piece, join_columns, memory_block, name_file_in_errors
from isotrope.sources.vectors.stores.address import FAISS_ENDING, format_address, parse
from isotrope.sources.vectors.stores.store import Store, open_store
from isotrope.sources.vectors.table_files import open_ipc, open_parquet
from isotrope.sources.vectors.unreadable_files import check_bad_files, open_files
from isotrope.storage.files import check_regular
from isotrope.storage.provenance import describe_file
from isotrope.storage.row_files import Columns

#: How each kind of file is opened: (path, column, group_by) -> blocks.
OPENERS: dict[str, Callable[[Path, str | None, str | None], list[Block]]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".parquet": open_parquet,
    ".arrow": open_ipc,
    ".feather": open_ipc,
    ".ipc": open_ipc,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
}

#: The endings of files that hold vectors.
ENDINGS = (*OPENERS, FAISS_ENDING)

_KNOWN = ", ".join(ENDINGS)

_BATCH_BYTES = 4 << 20
_MIN_BATCH_ROWS, _MAX_BATCH_ROWS = 256, 8192

#: Batches of a shard at least, about 64 MiB of float32.
_SHARD_BATCHES = 16


class ArraySource(Source):
    """Rows (n, d) of an array, a torch tensor, a file, a folder of files or a store, or of a list of these, in order.

    Args:
        data: The array, tensor, path or address, or a list of paths.
        column: The array of a npz, safetensors or HDF5 file, or the column of a parquet or arrow file or of a store.
        group_by: A column, or an array of integers in the same file, whose values become the rows' groups.
        batch_rows: Rows per batch, by default about 4 MiB of float32.
        exact: Whether rows are float64 whatever is stored.
        bad_files: "stop" at a file that cannot be read, or "skip" it; `left_out` then says why, by path.

    >>> source = ArraySource(np.arange(6, dtype=np.float16).reshape(3, 2), batch_rows=2)
    >>> source.width, source.total
    (2, 3)
    >>> for batch in source.batches():
    ...     print(batch.rows.sequence, batch.layers[0].tolist())
    [0 1] [[0.0, 1.0], [2.0, 3.0]]
    [2] [[4.0, 5.0]]
    """

    unit = "rows"

    def __init__(
        self,
        data: Any,
        *,
        column: str | None = None,
        group_by: str | None = None,
        batch_rows: int | None = None,
        exact: bool = False,
        bad_files: str = "stop",
    ) -> None:
        check_bad_files(bad_files)
        if batch_rows is not None and batch_rows < 1:
            raise InputError(f"batch_rows is {batch_rows}, expected at least 1: leave it out for the default.")
        self.column = column
        self.group_by = group_by
        self.paths = _list_paths(data)
        self._stores: dict[str, Store] = {}
        if self.paths is None:
            check_no_names("an array in memory", column, group_by)
            self._blocks = [memory_block(data)]
        else:
            self._blocks, self.left_out = open_files(self.paths, self._open, bad_files)
            self.paths = [path for path in self.paths if path not in self.left_out]
            self._stores = {path: self._stores[path] for path in self.paths if path in self._stores}
        self.layers: list[Layer] = [0]
        self.width = _common_width(self._blocks)
        self.batch_rows: int = batch_rows or default_rows(self.width)
        narrow = not exact and all(block.dtype in NARROW for block in self._blocks)
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    @property
    def total(self) -> int:
        return sum(block.rows for block in self._blocks)

    @property
    def store(self) -> Store | None:
        """The store that all rows are from, None for files and arrays."""
        return next(iter(self._stores.values())) if len(self._stores) == len(self._blocks) == 1 else None

    @property
    def columns(self) -> Columns | None:
        """What stands beside the rows in their files, None for arrays and stores, and where a file has nothing."""
        beside = [block.columns() for block in self._blocks if block.columns is not None]
        return join_columns(beside) if len(beside) == len(self._blocks) else None

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Batch number k holds the rows from k * batch_rows on, across files; earlier ones are not read."""
        row = start * self.batch_rows
        without = sum(store.left_out for store in self._stores.values())
        for parts in _regroup(self._pieces(row), self.batch_rows):
            values, groups = self._join(parts)
            sequence = np.arange(row, row + len(values), dtype=np.uint64)
            counts = {"rows": len(values)}
            if row == 0:  # what comes in no batch is counted once
                counts |= {"rows_without_vector": without} if without else {}
                counts |= {"bad_files": len(self.left_out)} if self.left_out else {}
            yield Batch({0: values}, Rows(sequence, group=groups), counts)
            row += len(values)

    @property
    def _shard_batches(self) -> int:
        return batches_per_shard(-(-self.total // self.batch_rows), least=_SHARD_BATCHES)

    @property
    def shard_size(self) -> int:
        return self._shard_batches * self.batch_rows

    def shard(self, number: int) -> Iterator[Batch]:
        """The batches of one shard; the rows before it are not read."""
        return islice(self.batches(number * self._shard_batches), self._shard_batches)

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance; files of more than 64 MiB have `sha256_ends` instead of `sha256`."""
        return {
            "kind": "vectors",
            "rows": self.total,
            "width": self.width,
            "dtype": ", ".join(sorted({block.dtype for block in self._blocks})),
            "files": [
                dict(self._stores[path].facts) if path in self._stores else _describe_file(path)
                for path in self.paths or []
            ],
            "column": self.column,
            "group_by": self.group_by,
            **({} if self.row_names is None else self.row_names.describe()),
            **(
                {"left_out": {format_address(path): why for path, why in self.left_out.items()}}
                if self.left_out
                else {}
            ),
        }

    def _open(self, given: str) -> list[Block]:
        if (address := parse(given)) is not None:
            self._stores[given] = open_store(address, self.column, self.group_by)
            return [self._stores[given].block]
        return _open(given, self.column, self.group_by)

    def _pieces(self, start: int) -> Iterator[Piece]:
        for block in self._blocks:
            if start < block.rows:
                with name_file_in_errors(block.name):
                    yield from _check_count(block, start, self.batch_rows)
            start = max(start - block.rows, 0)

    def _join(self, parts: Sequence[Piece]) -> Piece:
        """One C-contiguous copy in native byte order, whatever mixture of views the parts are."""
        values = np.empty((sum(len(part) for part, _ in parts), self.width), self.dtype)
        np.concatenate([part for part, _ in parts], out=values, casting="same_kind")
        groups = [labels for _, labels in parts if labels is not None]
        return values, Groups.join(groups) if groups else None


def default_rows(width: int) -> int:
    """How many rows are read at a time: about 4 MiB of float32.

    >>> default_rows(384)
    2730
    """
    return min(_MAX_BATCH_ROWS, max(_MIN_BATCH_ROWS, _BATCH_BYTES // (4 * width)))


def _check_count(block: Block, start: int, size: int) -> Iterator[Piece]:
    """The pieces of a block, refused where a damaged or changed file has not the rows that it announced."""
    row = start
    for piece in block.pieces(start, size):
        row += len(piece[0])
        yield piece
    if row != block.rows:
        raise ValueError(f"it announced {block.rows} rows and holds {row}")


def _regroup(pieces: Iterable[Piece], size: int) -> Iterator[list[Piece]]:
    """The pieces cut and collected into lists of `size` rows each; the last list may have fewer.

    >>> pieces = [(np.zeros((n, 1)), None) for n in (3, 1, 5)]
    >>> [[len(part) for part, _ in parts] for parts in _regroup(pieces, 4)]
    [[3, 1], [4], [1]]
    """
    parts: list[Piece] = []
    room = size
    for values, labels in pieces:
        low = 0
        while low < len(values):
            cut = slice(low, low + room)
            parts.append((values[cut], None if labels is None else labels[cut]))
            low += len(parts[-1][0])
            room -= len(parts[-1][0])
            if room == 0:
                yield parts
                parts, room = [], size
    if parts:
        yield parts


def _list_paths(data: Any) -> list[str] | None:
    """The files that `data` names, as given, folders replaced by their usable files; None for an array."""
    if isinstance(data, (str, os.PathLike)):
        return _list_files(os.fspath(data))
    if isinstance(data, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in data):
        if not data:
            raise InputError("the list of files is empty, expected at least one path: name a file or folder.")
        return [file for path in data for file in _list_files(os.fspath(path))]
    return None


def _list_files(path: str) -> list[str]:
    if is_url(path):
        return list_remote_files(path, tuple(OPENERS))
    if not os.path.isdir(path):
        return [path]
    with name_file_in_errors(path):
        names = sorted(os.listdir(path))
    files = [os.path.join(path, name) for name in names if _suffix(name) in ENDINGS]
    if not files:
        raise InputError(f"the folder {path} holds no file of vectors, expected {_KNOWN}: check the folder.")
    return files


def _describe_file(path: str) -> dict[str, Any]:
    return describe_remote(path) if is_url(path) else describe_file(path)


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def _open(given: str, column: str | None, group_by: str | None) -> list[Block]:
    path = Path(given)
    opener = OPENERS.get(_suffix(given))
    if is_url(given) and opener is not None:
        return open_url(given, opener, column, group_by)
    check_regular(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}, expected a file or folder of vectors: check the path.")
    if opener is None:
        raise InputError(
            f"{path} has the extension {path.suffix!r}, expected {_KNOWN}: convert it, for example with np.save."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes), expected vectors: write the file again.")
    with name_file_in_errors(str(path)):
        return opener(path, column, group_by)


def _common_width(blocks: Sequence[Block]) -> int:
    first = blocks[0]
    for block in blocks:
        if block.width != first.width:
            raise InputError(
                f"{block.name} has {block.width} columns and {first.name} has {first.width}, "
                "expected the same width in all files: leave out those that do not belong."
            )
    return first.width
