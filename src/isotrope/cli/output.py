"""All that the command line prints goes through here: control characters from data are shown, never obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from isotrope.formats.json import format_json
from isotrope.formats.printable import escape_controls, escape_json, escape_line

#: Width of what is piped: as wide as it needs to be.
_PIPED = 200


class SafeConsole(Console):
    """A console that escapes control characters, and breaks lines between words on a terminal, nowhere in a pipe."""

    def print(self, *objects: Any, **options: Any) -> None:
        if len(objects) == 1 and isinstance(objects[0], str | Text):
            text = self.render_str(objects[0]) if isinstance(objects[0], str) else objects[0]
            objects = (break_lines(text, self.width) if self.is_terminal else text,)
            options["soft_wrap"] = True
        super().print(*objects, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_controls(segment.text), segment.style)


def break_lines(text: Text, width: int) -> Text:
    """Break a text into lines between its words; a word longer than a line, such as a path, stays whole.

    >>> break_lines(Text("one two /a/long/path three"), 8).plain
    'one two\\n/a/long/path\\nthree'
    """
    lines = []
    for line in text.split("\n", allow_blank=True):
        breaks, start = [], 0
        for word in re.finditer(r"\S+", line.plain):
            before = line.plain[start : word.start()]
            if before.strip() and cell_len(before + word[0]) > width:
                start = word.start()
                breaks.append(start)
        for part in line.divide(breaks):
            part.rstrip()
            lines.append(part)
    return Text("\n").join(lines)


def console(*, stderr: bool = False) -> Console:
    """Standard output or error; brackets in names stay what they are."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPED
    return SafeConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text."""
    console(stderr=err).print(text)


def print_json(data: Any) -> None:
    """Print data as a JSON document; what a terminal would obey is escaped as JSON escapes it."""
    typer.echo(escape_json(format_json(data)))


def print_problem(sentence: str) -> None:
    """Print an error or a warning on standard error, on one line wherever that is not a terminal."""
    echo(f"isotrope: {escape_line(sentence)}", err=True)
