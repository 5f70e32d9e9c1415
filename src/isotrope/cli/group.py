"""Groups of commands that are imported when they are asked for, so that help is fast."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import getdoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class LazyCommand(TyperCommand):
    """A command, or a group of commands, that is imported when it is asked for; until then it has a name and a summary.

    Args:
        name: Of the command.
        summary: The first paragraph of its help; the docstring of its function is the rest.
        module: Has the function, or the group, as an attribute of that name.
    """

    def __init__(self, name: str, summary: str, module: str) -> None:
        super().__init__(name, help=summary)
        self._module = module

    def load(self) -> Any:
        """Import the command itself."""
        found = getattr(import_module(self._module), str(self.name))
        if isinstance(found, typer.Typer):
            group = get_group(found)
            group.help = self.help
            return group
        alone = typer.Typer(add_completion=False)
        alone.command(self.name, help="\n\n".join(filter(None, (self.help, getdoc(found)))))(found)
        return get_command(alone)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Prepare a call of the command itself."""
        return self.load().make_context(*arguments, **options)


def make_group(name: str, commands: Mapping[str, str], *, package: str, **options: Any) -> typer.Typer:
    """Make a group of commands.

    Args:
        name: Of the group.
        commands: The summary of each command, by its name.
        package: Has a module for each command.
        options: Further arguments of `typer.Typer`.
    """

    class Group(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            for command, summary in commands.items():
                self.add_command(LazyCommand(command, summary, f"{package}.{command}"))

    # With a value for --help typer need not find one, for which it would import pydantic.
    settings = {"default_map": {"help": False}}
    app = typer.Typer(name=name, cls=Group, add_completion=False, context_settings=settings, **options)
    app.callback(invoke_without_command=True)(print_help)
    return app


def print_help(context: typer.Context) -> None:
    """Print the help of a group of commands where no command of it is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
