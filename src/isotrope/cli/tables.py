"""Tables that fit the terminal: less important columns are left out, and no word is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from isotrope.formats.printable import escape_line

#: Blanks between columns.
_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        title: The heading.
        right: Whether cells stand at the right, as numbers do.
        wraps: The width down to which cells may go over several lines; 0 where they never do.
        rank: 0 for a column that is always shown; of the others, the one with the highest rank is left out first.
    """

    title: str
    right: bool = False
    wraps: int = 0
    rank: int = 0


def print_table(
    out: Console, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Iterable[str | None] | None = None
) -> None:
    """Print a table as wide as the console at most; where even the important columns do not fit, a list of records.

    Args:
        out: Where to print.
        columns: The columns, from left to right.
        rows: Cells of each row, one for each column.
        styles: The style of each row, by default none.
    """
    cells = [[escape_line(cell) for cell in row] for row in rows]
    looks = [None] * len(cells) if styles is None else list(styles)
    if not out.is_terminal:  # a pipe has room for everything
        least = sum(_find_least_width(*column) for column in _pair_cells(columns, cells))
        out.width = max(out.width, least + _GAP * len(columns))
    shown = choose_columns(columns, cells, out.width)
    if not shown:
        _print_records(out, columns, cells, looks)
        return
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for index, width in shown.items():
        column = columns[index]
        table.add_column(column.title, justify="right" if column.right else "left", width=width)
    for row, look in zip(cells, looks, strict=True):
        table.add_row(*(row[index] for index in shown), style=look)
    out.print(table)
    if missing := [column.title for index, column in enumerate(columns) if index not in shown and column.title]:
        out.print(f"left out at this width: {', '.join(missing)}", style="dim")


def choose_columns(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> dict[int, int]:
    """Choose the columns that fit into a width, and how wide each is; none where the important ones do not fit.

    >>> columns = [Column("name"), Column("value", right=True), Column("how", rank=1)]
    >>> choose_columns(columns, [["mean_cosine", "0.5", "exact, 100 rows"]], 80)
    {0: 11, 1: 5, 2: 15}
    >>> choose_columns(columns, [["mean_cosine", "0.5", "exact, 100 rows"]], 20)
    {0: 11, 1: 5}
    """
    least = [_find_least_width(*column) for column in _pair_cells(columns, rows)]
    whole = [_find_full_width(*column) for column in _pair_cells(columns, rows)]
    shown = list(range(len(columns)))
    while sum(least[index] for index in shown) + _GAP * (len(shown) - 1) > width:
        optional = [index for index in shown if columns[index].rank]
        if not optional:
            return {}
        shown.remove(max(optional, key=lambda index: columns[index].rank))
    spare = width - sum(least[index] for index in shown) - _GAP * (len(shown) - 1)
    widths = {}
    for index in sorted(shown, key=lambda index: whole[index] - least[index]):
        widths[index] = min(whole[index], least[index] + spare)
        spare -= widths[index] - least[index]
    return {index: widths[index] for index in shown}


def _pair_cells(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[tuple[Column, list[str]]]:
    """Each column with its cells."""
    return [(column, [row[index] for row in rows]) for index, column in enumerate(columns)]


def _find_least_width(column: Column, cells: Sequence[str]) -> int:
    """The width below which a word of the column would be cut."""
    words = [word for text in (column.title, *(cells if column.wraps else ())) for word in text.split()]
    longest = max(map(cell_len, words), default=0)
    if not column.wraps:
        return max(longest, *map(cell_len, cells)) if cells else longest
    return max(longest, min(column.wraps, _find_full_width(column, cells)))


def _find_full_width(column: Column, cells: Sequence[str]) -> int:
    """The width in which nothing of the column has to go over lines."""
    return max(map(cell_len, (column.title, *cells)))


def _print_records(
    out: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[str | None]
) -> None:
    """Print each row as a few lines, a cell on each."""
    for number, (row, style) in enumerate(zip(rows, styles, strict=True)):
        if number:
            out.print()
        for column, cell in zip(columns, row, strict=True):
            if cell.strip():
                out.print(f"{column.title}: {cell.strip()}" if column.title else cell.strip(), style=style)
