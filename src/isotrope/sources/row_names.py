"""Ids and texts of rows: checked before a pass, and looked up by row number after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.batch import shorten_label

if TYPE_CHECKING:
    from isotrope.sources.corpora.corpus import Corpus, Text

#: Characters of a text that are kept.
SNIPPET = 160

#: Rows whose ids or texts are read at a time.
AT_ONCE = 4096


class RowName(NamedTuple):
    """What a row is called: its id and the beginning of its text, None where they are not known."""

    id: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class NameColumn:
    """Ids or texts in the order of the rows.

    Attributes:
        where: What they are read from, for messages.
        read: Begins a new pass, which gives the values of some rows at a time.
    """

    where: str
    read: Callable[[], Iterator[Sequence[Any]]]


@dataclass(frozen=True)
class RowNames:
    """Ids and texts of the rows of a source. Memory: eight bytes a row while ids are checked, and what is asked for.

    Attributes:
        rows: How many rows there are, None where the names are read with the rows.
        ids: The ids, None without any.
        texts: The texts, None without any.

    >>> names = RowNames(3, NameColumn("ids", lambda: iter([["a", "b"], ["c"]])), None)
    >>> names.check()
    >>> names.find(np.array([2, 0]))
    {0: RowName(id='a', text=None), 2: RowName(id='c', text=None)}
    """

    rows: int | None
    ids: NameColumn | None
    texts: NameColumn | None

    def check(self) -> None:
        """Check that there is one id for each row, none of them twice, and one text for each row."""
        if self.ids is not None:
            self._check_count(self.ids, "ids", _check_ids(self.ids))
        if self.texts is not None:
            self._check_count(self.texts, "texts", sum(map(len, self.texts.read())))

    def _check_count(self, column: NameColumn, what: str, found: int) -> None:
        if self.rows is not None and found != self.rows:
            raise InputError(
                f"{column.where} holds {found:,} {what} and there are {self.rows:,} rows, expected one for each row; "
                "check that both are of the same data."
            )

    def find(self, rows: NDArray[np.integer[Any]]) -> dict[int, RowName]:
        """Find the names of some rows, by row number."""
        wanted = np.unique(rows)
        ids, texts = (_find_values(column, wanted) for column in (self.ids, self.texts))
        return {
            int(row): RowName(
                None if ids.get(row) is None else shorten_label(format_id(ids[row])),
                None if texts.get(row) is None else shorten_text(str(texts[row])),
            )
            for row in wanted.tolist()
        }

    def read_ids(self) -> list[str]:
        """Read the ids of all rows."""
        return [] if self.ids is None else [format_id(value).strip() for part in self.ids.read() for value in part]

    def measure_texts(self, rows: NDArray[np.integer[Any]]) -> dict[int, int]:
        """Measure the texts of some rows in characters, by row number; rows without a text are left out."""
        texts = _find_values(self.texts, np.unique(rows))
        return {row: len(str(text)) for row, text in texts.items() if text is not None and str(text).strip()}

    def describe(self) -> dict[str, Any]:
        """Describe where the names are from, as plain data for provenance."""
        columns = {"id_column": self.ids, "text_column": self.texts}
        return {name: column.where for name, column in columns.items() if column is not None}


def shorten_text(text: str) -> str:
    """Return the beginning of a text on one line, 160 characters at most.

    >>> shorten_text("one\\n  two"), len(shorten_text("word " * 100))
    ('one two', 160)
    """
    line = " ".join(text[: 8 * SNIPPET].split())
    return line if len(line) <= SNIPPET else f"{line[: SNIPPET - 1]}…"


def format_id(value: Any) -> str:
    """Format an id as text.

    >>> format_id(7), format_id(b"a1")
    ('7', 'a1')
    """
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def make_corpus_names(corpus: Corpus, *, has_ids: bool) -> RowNames:
    """Make the names of texts, of which each is a row; has_ids: whether their groups are their ids."""

    def read(get: Callable[[Text], str | None]) -> Iterator[list[str | None]]:
        texts = iter(corpus)
        while part := list(islice(texts, AT_ONCE)):
            yield [get(text) for text in part]

    # A corpus has the group "null" for a text without a value.
    ids = NameColumn(corpus.name, lambda: read(lambda text: None if text.group == "null" else text.group))
    texts = NameColumn(corpus.name, lambda: read(lambda text: text.text))
    return RowNames(None, ids if has_ids else None, texts)


def _check_ids(column: NameColumn) -> int:
    """Check that ids are there and differ, and return how many there are."""
    hashes: list[NDArray[np.int64]] = []
    row = 0
    for values in column.read():
        for place, value in enumerate(values):
            if value is None or value != value or not format_id(value).strip():
                raise InputError(
                    f"row {row + place} of {column.where} (counted from 0) has no id, expected one for each row; "
                    "fill it in, or name another column."
                )
        hashes.append(np.fromiter(map(hash, map(format_id, values)), np.int64, len(values)))
        row += len(values)
    ordered = np.sort(np.concatenate([*hashes, np.empty(0, np.int64)]))
    if len(suspects := np.unique(ordered[1:][ordered[1:] == ordered[:-1]])):
        _check_repeats(column, set(suspects.tolist()))
    return row


def _check_repeats(column: NameColumn, suspects: set[int]) -> None:
    """Refuse ids that repeat, among those whose hash does: two different ones may have the same hash."""
    first: dict[str, int] = {}
    row = 0
    for values in column.read():
        for name in map(format_id, values):
            if hash(name) in suspects and first.setdefault(name, row) != row:
                raise InputError(
                    f"the ids of {column.where} repeat: rows {first[name]} and {row} (counted from 0) are both "
                    f"{shorten_label(name)!r}, expected a different one for each row; name another column, or remove "
                    "the copies."
                )
            row += 1


def _find_values(column: NameColumn | None, wanted: NDArray[np.integer[Any]]) -> Mapping[int, Any]:
    """The values of some rows, ascending, by row number; reading ends after the last of them."""
    found: dict[int, Any] = {}
    start = 0
    if column is None or not len(wanted):
        return found
    for values in column.read():
        low, high = np.searchsorted(wanted, (start, start + len(values)))
        found |= {row: values[row - start] for row in wanted[low:high].tolist()}
        start += len(values)
        if high == len(wanted):
            break
    return found
