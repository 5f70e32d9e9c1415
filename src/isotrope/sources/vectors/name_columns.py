"""Where the ids and texts of vectors are: a column beside the vectors, a file of their own, or a list in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.registry import did_you_mean
from isotrope.sources.row_names import AT_ONCE, NameColumn, RowNames
from isotrope.sources.vectors.source import ArraySource
from isotrope.sources.vectors.stores.address import format_address
from isotrope.storage.row_files import Columns

#: Columns that hold ids, by their names.
ID_NAMES = ("_id", "id")


def open_vector_names(source: ArraySource, ids: Any, texts: Any) -> RowNames | None:
    """Open the ids and the texts of vectors.

    Args:
        source: The vectors.
        ids: A column beside the vectors, a file (`FILE`, or `FILE:COLUMN` of a table), a list, or None.
        texts: The same for texts.

    Returns:
        Both, None where neither is given.

    >>> source = ArraySource(np.ones((2, 3)))
    >>> open_vector_names(source, ["a", "b"], None).find(np.array([1]))
    {1: RowName(id='b', text=None)}
    """
    if ids is None and texts is None:
        return None
    columns = (
        None if given is None else _open_column(source, given, what, option)
        for given, what, option in ((ids, "ids", "id-column"), (texts, "texts", "text-column"))
    )
    return RowNames(source.total, *columns)


def _open_column(source: ArraySource, given: Any, what: str, option: str) -> NameColumn:
    if not isinstance(given, (str, os.PathLike)):
        return NameColumn(f"the list of {what}", partial(_read_list, given, what))
    name = os.fspath(given)
    store, columns = source.store, source.columns
    where = _name_vectors(source)
    if store is not None and name in store.column_names:
        return NameColumn(f"{where} [{name}]", partial(store.read_column, name, AT_ONCE))
    if columns is not None and name in columns.names:
        return NameColumn(f"{where} [{name}]", partial(_read_column, columns, name))
    if (found := _find_file(name)) is not None:
        return open_name_file(*found, usual=ID_NAMES if what == "ids" else ())
    there = list(store.column_names if store is not None else [] if columns is None else columns.names)
    held = f"has the columns {', '.join(there)}" if there else "has no columns beside the vectors"
    raise InputError(
        f"{where} has no column {name!r}{did_you_mean(name, there)}, nor is there such a file; it {held}: "
        f"give --{option} one of its columns, or a file with one line for each row (FILE, or FILE:COLUMN of a table)."
    )


def _name_vectors(source: ArraySource) -> str:
    """What the vectors are read from, in words and without secrets."""
    if not source.paths:
        return "the array in memory"
    more = f" and {len(source.paths) - 1:,} more files" if len(source.paths) > 1 else ""
    return f"{format_address(source.paths[0])}{more}"


def _read_list(values: Any, what: str) -> Iterator[Sequence[Any]]:
    if isinstance(values, Mapping) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise InputError(f"got the {what} as a {type(values).__name__}, expected a column, a file or a list.")
    yield values.tolist() if isinstance(values, np.ndarray) else list(values)


def _read_column(columns: Columns, name: str) -> Iterator[Sequence[Any]]:
    for batch in columns.read(AT_ONCE, [name]):
        yield batch.column(0).to_pylist()


def _find_file(name: str) -> tuple[Path, str | None] | None:
    """The file that `FILE` or `FILE:COLUMN` names, and the column; None where there is no such file."""
    if os.path.isfile(name):
        return Path(name), None
    path, colon, column = name.rpartition(":")
    return (Path(path), column) if colon and os.path.isfile(path) else None


def open_name_file(path: Path, column: str | None, usual: Sequence[str] = ()) -> NameColumn:
    """Open a file with a value for each row: plain text by lines, or a column of a table.

    Args:
        path: The file.
        column: The column of a table, None where there is one or its name is usual.
        usual: Names of columns that are taken where there are several.
    """
    from isotrope.sources.corpora.files import format_of

    form = format_of(path, "line")
    columns = form.columns(path) or {}
    column = column or next((name for name in usual if name in columns), None)
    if column is None and len(columns) > 1:
        raise InputError(
            f"{path} has the columns {', '.join(columns)}, expected one; name it behind a colon, as in "
            f"{path}:{next(iter(columns))}."
        )
    if column is not None and column not in columns:
        held = f"choose one of: {', '.join(columns)}" if columns else "it holds plain lines, leave the column out"
        raise InputError(f"{path} has no column {column!r}{did_you_mean(column, columns)}; {held}.")
    chosen = column or next(iter(columns), None)
    where = str(path) if chosen is None else f"{path} [{chosen}]"
    return NameColumn(where, partial(_read_file, path, chosen))


def _read_file(path: Path, column: str | None) -> Iterator[Sequence[Any]]:
    from isotrope.sources.corpora.files import TEXT, format_of
    from isotrope.sources.corpora.lines import decode_lines, file_lines

    form = format_of(path, "line")
    if form is TEXT["line"]:  # blank lines count: a row may have no text
        values: Iterator[Any] = (line.strip() for _, line in decode_lines(file_lines(path), str(path)))
    else:
        rows = (row for _, row in form.rows(path, [] if column is None else [column]))
        values = (row.get(column) if isinstance(row, Mapping) else row for row in rows)
    while part := list(islice(values, AT_ONCE)):
        yield part
