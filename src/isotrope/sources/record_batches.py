"""Record batches of parquet files and of Arrow files and streams, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: With these, pyarrow reads a row group piece by piece; by default it loads the whole chunk of a column.
_PARQUET_STREAMING = {"buffer_size": 1 << 20, "pre_buffer": False}

_IPC_FILE_MAGIC = b"ARROW1"


def parquet_batches(
    path: Any, columns: Sequence[str], labels: str | None, start: int, size: int
) -> Iterator[tuple[int, Any]]:
    """Record batches from the row group that holds row `start` on, each with the number of its first row.

    Args:
        path: A path, or a remote file.
        columns: The columns to read.
        labels: The one of them that holds labels, each of which is kept once and not once for each row.
        start: The first row that is wanted.
        size: Rows of a batch at most.
    """
    import pyarrow.parquet as pq

    # Other types than text are read as ever.
    repeated = [] if labels is None else [labels]
    with pq.ParquetFile(start_reader(path), read_dictionary=repeated, **_PARQUET_STREAMING) as file:
        groups = range(file.num_row_groups)
        ends = np.cumsum([file.metadata.row_group(group).num_rows for group in groups])
        first = int(np.searchsorted(ends, start, side="right"))
        row = int(ends[first - 1]) if first else 0
        for batch in file.iter_batches(size, row_groups=list(groups[first:]), columns=list(columns)):
            yield row, batch
            row += batch.num_rows


def start_reader(path: Any) -> Any:
    """A path as it is, a remote file opened."""
    begin = getattr(path, "begin", None)
    return path if begin is None else begin()


def ipc_batches(path: Path, start: int, size: int) -> Iterator[tuple[int, Any]]:
    """All record batches: those before `start` are only mapped, and `size` was fixed by the writer.

    All columns too: the option to include only some makes arrow copy what it would otherwise map.
    """
    with open_ipc_reader(path) as reader:
        row = 0
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_ipc_file(reader) else reader:
            yield row, batch
            row += batch.num_rows


@contextmanager
def open_ipc_reader(path: Path) -> Iterator[Any]:
    """Open a reader of an Arrow file or an Arrow stream, memory-mapped."""
    import pyarrow as pa
    from pyarrow import ipc

    with pa.memory_map(str(path)) as file:
        is_file = file.read(len(_IPC_FILE_MAGIC)) == _IPC_FILE_MAGIC
        file.seek(0)
        with ipc.open_file(file) if is_file else ipc.open_stream(file) as reader:
            yield reader


def is_ipc_file(reader: Any) -> bool:
    """Whether a reader is of an Arrow file, and not of a stream."""
    return hasattr(reader, "num_record_batches")
