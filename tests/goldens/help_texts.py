"""What `--help` says of every command, at a fixed width and without colour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from testkit.command import list_subcommands

WIDTH = 100

#: Begins the part of a command in the recorded file.
_PROMPT = "$ "


def versions() -> str:
    """The libraries that lay out the text, in words."""
    return f"typer {version('typer')}, rich {version('rich')}"


def commands() -> list[tuple[str, ...]]:
    """The words of every command and subcommand of `isotrope`, found by walking its tree; the program itself is ()."""
    from typer.main import get_command

    from isotrope.cli.main import app

    return list(_walk(get_command(app)))


def _walk(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in list_subcommands(command).items():
        yield from _walk(below, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """The help of one command."""
    from typer.testing import CliRunner

    from isotrope.cli.main import app

    # On a dumb terminal the width would be 80, whatever COLUMNS says.
    surroundings = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "xterm"}
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="isotrope", env=surroundings)
    if result.exit_code:
        raise RuntimeError(f"isotrope {' '.join(words)} --help failed: {result.output}")
    without_colour = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return "\n".join(line.rstrip() for line in without_colour.strip().splitlines())


def write_help(path: Path) -> Path:
    """Write the help of all commands to a file."""
    parts = [f"{_PROMPT}{_line(words)}\n\n{help_of(words)}\n" for words in commands()]
    path.write_text("\n".join([f"{versions()}, {WIDTH} columns\n", *parts]), encoding="utf-8")
    return path


def read_help(path: Path) -> tuple[str, dict[str, str]]:
    """What laid out the recorded texts, and each of them by its command."""
    first, *parts = re.split(rf"^{re.escape(_PROMPT)}", path.read_text("utf-8"), flags=re.MULTILINE)
    texts = dict(part.split("\n", 1) for part in parts)
    return first.strip().removesuffix(f", {WIDTH} columns"), {line: text.strip() for line, text in texts.items()}


def _line(words: tuple[str, ...]) -> str:
    return " ".join(("isotrope", *words, "--help"))
