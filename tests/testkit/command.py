"""The tree of commands, what a command said, and what a refusal must look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from typer.main import get_command

from isotrope.cli.group import LazyCommand
from isotrope.cli.main import app


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Result]


def list_subcommands(command: Any) -> dict[str, Any]:
    """The commands below a command, by name, each imported; empty where it is no group."""
    return {name: _load(below) for name, below in getattr(command, "commands", {}).items()}


def find_command(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the first words of a line name, and the words behind these."""
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        command = _load(command.commands[rest.pop(0)])
    return command, rest


def _load(command: Any) -> Any:
    return command.load() if isinstance(command, LazyCommand) else command


def one_sentence(result: Result) -> str:
    """What a refusal said, having checked that it is one sentence, and nothing else."""
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("isotrope: ")
    assert result.err.count("\n") == 1
    assert result.err.endswith((".\n", "?\n"))
    assert "Traceback" not in result.err
    return result.err
