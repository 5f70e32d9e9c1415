"""Which column of a table holds the texts, and the texts and groups of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from isotrope.errors import InputError
from isotrope.registry import did_you_mean
from isotrope.sources.batch import shorten_label

#: A row's number, counted from 1, and the row: a string, a mapping from column to value, or None.
Row: TypeAlias = tuple[int, Any]
#: A text (None where the value is null) and its group.
Cell: TypeAlias = tuple[str | None, str | None]

DEFAULTS = ("text", "sentence")
WITH_COLUMNS = "JSON Lines, JSON, CSV, TSV, Parquet and Arrow files and Hugging Face datasets"
HEAD = 100  # rows that are looked at to learn which columns there are and which hold text


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_no_number(value: str) -> bool:
    """Whether a cell of a CSV file, where everything is a string, looks like text."""
    try:
        float(value)
    except ValueError:
        return True
    return False


def head_columns(rows: Iterable[Row], is_text: Callable[[Any], bool]) -> dict[str, bool] | None:
    """The columns of the first rows, true where a text was seen or nothing else; None without rows.

    >>> rows = [(1, {"a": "x", "b": 1, "c": None}), (2, {"a": 2, "d": "y"})]
    >>> head_columns(rows, is_string)
    {'a': True, 'b': False, 'c': True, 'd': True}
    """
    head = [row for _, row in islice(rows, HEAD)]
    seen: dict[str, list[bool]] = {}
    for row in head:
        for column, value in row.items() if isinstance(row, Mapping) else ():
            seen.setdefault(column, []).extend([] if value in (None, "") else [is_text(value)])
    return {column: any(texts) or not texts for column, texts in seen.items()} if head else None


def choose_column(
    name: str, columns: Mapping[str, bool] | None, column: str | None, group_by: str | None
) -> str | None:
    """The column to read: the one asked for, else "text", "sentence" or the only one that holds text.

    columns: whether each column holds text; empty where rows are plain strings, None where nothing is known.

    >>> choose_column("a.csv", {"body": True, "label": False}, None, None)
    'body'
    """
    if columns is None:
        return column
    listed = ", ".join(columns)
    for asked in (column, group_by):
        if asked is not None and asked not in columns:
            raise InputError(
                f"{name} has no column {asked!r}{did_you_mean(asked, columns)}; choose one of: {listed}."
                if columns
                else f"{name} holds plain text without a column {asked!r}; `column` and `group_by` "
                f"work for {WITH_COLUMNS}."
            )
    if not columns:
        return None
    if column is not None:
        if not columns[column]:
            raise InputError(f"column {column!r} of {name} does not hold strings; choose another of: {listed}.")
        return column
    texts = [known for known, is_text in columns.items() if is_text and known != group_by]
    chosen = [known for known in DEFAULTS if known in texts][:1] or texts
    if len(chosen) != 1:
        held = "several columns of strings" if texts else "no column of strings"
        raise InputError(f"{name} has {held}; choose the one to read with `column`, of: {listed}.")
    return chosen[0]


def text_cells(rows: Iterable[Row], name: str, place: str, column: str | None, group_by: str | None) -> Iterator[Cell]:
    """The text and the group of each row, the text None where it is null or its field is missing.

    >>> list(text_cells([(1, {"text": "x", "year": 1999}), (2, None)], "a.jsonl", "line", "text", "year"))
    [('x', '1999'), (None, 'null')]
    """
    for number, row in rows:
        fields = row if isinstance(row, Mapping) and column is not None else None
        text = row if fields is None else fields.get(column)
        if not (text is None or isinstance(text, str)):
            held = "it is" if fields is None else f"{column!r} is"
            raise InputError(
                f"{place} {number} of {name} cannot be used: {held} a {type(text).__name__} where a string "
                "is expected; correct it or choose another `column`."
            )
        group = fields.get(group_by) if fields and group_by is not None else None
        yield text, None if group_by is None else "null" if group in (None, "") else shorten_label(str(group))
