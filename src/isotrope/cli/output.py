"""All that the command line prints goes through here: control characters from data are shown, never obeyed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from isotrope.printable import escape_controls, escape_json, escape_line

#: Width of what is piped: as wide as it needs to be.
_PIPED = 200


class SafeConsole(Console):
    """A console that escapes control characters, and breaks lines between words on a terminal, nowhere in a pipe."""

    def print(self, *objects: Any, **options: Any) -> None:
        if all(isinstance(part, str | Text) for part in objects):
            # A word that is longer than a line, such as a path, stays whole, so that it can be copied.
            wrapped = {"soft_wrap": False, "overflow": "ignore", "crop": False}
            options |= wrapped if self.is_terminal else {"soft_wrap": True}
        super().print(*objects, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_controls(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """Standard output or error; brackets in names stay what they are."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPED
    return SafeConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text."""
    console(stderr=err).print(text)


def echo_json(document: str) -> None:
    """Print a JSON document; what a terminal would obey is escaped as JSON escapes it."""
    typer.echo(escape_json(document))


def warn(sentence: str) -> None:
    """Print a sentence on standard error, on one line wherever that is not a terminal."""
    echo(f"isotrope: {escape_line(sentence).rstrip('.')}.", err=True)
