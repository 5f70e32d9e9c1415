"""Ids of vectors: a column beside them, a file with one id for each row, or a list."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from isotrope.errors import InputError
from isotrope.registry import did_you_mean
from isotrope.sources.corpora.lines import decode_lines, file_lines
from isotrope.sources.vectors.source import ArraySource

#: Columns and keys that hold ids unless others are named.
ID_NAMES = ("_id", "id")

#: Rows of a table that are read at a time.
_AT_ONCE = 8192

#: Files with a JSON object in each line.
_JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def read_row_ids(
    source: ArraySource, what: str, *, column: str | None = None, ids: str | Path | Sequence[object] | None = None
) -> list[str] | None:
    """Read the ids of all rows, and check that each row has one of its own.

    Args:
        source: The vectors.
        what: What the rows are, for errors: "documents" or "queries".
        column: The column beside the vectors that holds ids; by default `_id` or `id`, where there is one.
        ids: A file with an id in each line, or with an object in each line that has an `_id` or `id`; or a list of
            ids. It is used in place of a column.

    Returns:
        The ids, None where there are none.

    Examples:
        >>> import numpy as np
        >>> read_row_ids(ArraySource(np.ones((2, 3))), "documents", ids=["a", 7])
        ['a', '7']
    """
    if ids is None:
        found = _find_column(source, what, column)
        if found is None:
            return None
        where, given = f"the column {found!r} of the {what}", list(_read_column(source, found))
    elif isinstance(ids, (str, os.PathLike)):
        where, given = str(ids), list(_read_file(Path(ids)))
    else:
        where, given = f"the list of ids of {what}", list(ids)
    return check_ids(given, source.total, what, where)


def check_ids(given: Sequence[object], rows: int, what: str, where: str) -> list[str]:
    """Check that there is one id for each row, that none is missing and that none repeats."""
    if len(given) != rows:
        raise InputError(f"{where} has {len(given):,} ids and there are {rows:,} {what}; give one for each, in order.")
    missing = [row for row, name in enumerate(given) if name is None or not str(name).strip()]
    if missing:
        raise InputError(
            f"{len(missing):,} of {rows:,} ids in {where} are missing (the first: row {missing[0]}, counted from 0); "
            "give each row an id."
        )
    names = [str(name).strip() for name in given]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        shown = ", ".join(map(repr, repeated[:3]))
        raise InputError(
            f"{len(repeated):,} ids in {where} occur more than once (the first: {shown}); make them unique."
        )
    return names


def _find_column(source: ArraySource, what: str, column: str | None) -> str | None:
    """The column that holds ids, None where there is none."""
    beside = source.columns
    names = [] if beside is None else beside.names
    if column is None:
        return next((name for name in ID_NAMES if name in names), None)
    if column not in names:
        held = f"they have: {', '.join(names)}" if names else "no columns stand beside these vectors"
        raise InputError(f"the {what} have no column {column!r} of ids{did_you_mean(column, names)}; {held}.")
    return column


def _read_column(source: ArraySource, column: str) -> Iterator[object]:
    beside = source.columns
    assert beside is not None
    for batch in beside.read(_AT_ONCE):
        yield from batch.column(column).to_pylist()


def _read_file(path: Path) -> Iterator[object]:
    """The ids of a file, one for each line."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r} of ids; check the path.")
    lines = decode_lines(file_lines(path), str(path))
    if not path.name.lower().endswith(_JSON_ENDINGS):
        return (text.strip() for _, text in lines)
    return (_parse_id(text, line, path) for line, text in lines if text.strip())


def _parse_id(text: str, line: int, path: Path) -> object:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON in line {line} ({error}); correct or remove the line.") from error
    name = next((found[key] for key in ID_NAMES if key in found), None) if isinstance(found, dict) else None
    if not isinstance(name, str | int):
        raise InputError(f"{path} has no object with an _id or id in line {line}; correct or remove the line.")
    return name
