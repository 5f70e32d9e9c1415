"""Rows to look at in the terminal: the worst five of each kind, by id and with the beginning of their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from isotrope.findings import Findings

#: Rows of each kind that are shown, and characters of an id and of a text.
_SHOWN, _LONGEST_ID, _LONGEST_TEXT = 5, 20, 160

#: A row of `Findings.rows` in words, by kind.
_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "zero": lambda row: "all zeros",
    "nonfinite": lambda row: "NaN or infinity",
    "extreme": lambda row: f"{row['times_median']:.3g} x median length",
    "duplicates": lambda row: f"{row['size']:,} {'equal' if row['equal'] else 'alike'}",
    "hubs": lambda row: f"in {row['occurrences']:,} lists",
    "never_found": lambda row: f"best cosine {row['cosine']:.2f}",
    "outliers": lambda row: f"score {row['outlier_score']:.1f}",
}

#: What each kind is called, and the count of all rows of it.
_TITLES = {
    "zero": ("zero", ("zero_rows",)),
    "nonfinite": ("not finite", ("nonfinite_rows",)),
    "extreme": ("extreme", ("short_rows", "long_rows")),
    "duplicates": ("duplicates", ()),
    "hubs": ("hubs", ("hub_rows",)),
    "never_found": ("never found", ("never_found_rows",)),
    "outliers": ("outliers", ("outlier_rows",)),
}


def print_rows(out: Console, findings: Findings) -> None:
    """Print the worst rows of each kind, where rows are vectors or whole texts."""
    if "examined_rows" not in findings.counts or not findings.rows:
        return
    lines = [line for kind in _TITLES for line in _list_lines(findings, kind)]
    columns = [Column("rows"), Column("id"), Column("why"), Column("text", rank=1)]
    has_texts = any(line[3] for line in lines)
    room = out.width - sum(max(len(c.title), *(len(line[i]) for line in lines)) + 2 for i, c in enumerate(columns[:3]))
    cells = [[*line[:3], shorten(line[3], min(room, _LONGEST_TEXT))][: 3 + has_texts] for line in lines]
    out.print()
    print_table(out, columns[: 3 + has_texts], cells)
    out.print(f"of {findings.counts['examined_rows']:,} rows that were compared with each other", style="dim")


def _list_lines(findings: Findings, kind: str) -> Iterator[list[str]]:
    """Lines of one kind: its title and count once, then id, reason and text of each row."""
    rows = _take_first_of_groups(findings.rows.get(kind, []))
    title, counted = _TITLES[kind]
    count = sum(findings.counts.get(name, 0) for name in counted) or len(rows)
    for place, row in enumerate(rows[:_SHOWN]):
        name = f"{title} ({count:,})" if place == 0 else ""
        yield [name, shorten(str(row["id"]), _LONGEST_ID), _WORDS[kind](row), row.get("text", "")]


def _take_first_of_groups(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first row of each group of duplicates; rows that are in no group all stay."""
    first: dict[Any, Mapping[str, Any]] = {}
    for row in rows:
        first.setdefault(row.get("group", ("row", row["row"])), row)
    return list(first.values())


def shorten(text: str, most: int) -> str:
    """Shorten a text to a number of characters.

    >>> shorten("antidisestablishment", 8)
    'antidis…'
    """
    return text if len(text) <= most else f"{text[: max(most - 1, 0)]}…"
