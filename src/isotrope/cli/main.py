"""The command `isotrope`: one file per subcommand, heavy imports inside the commands."""

from __future__ import annotations

import sys

import typer

from isotrope import __version__
from isotrope.cli.catalogue import catalogue
from isotrope.cli.compare import compare
from isotrope.cli.scan import scan
from isotrope.errors import IsotropeError

app = typer.Typer(
    name="isotrope",
    help="Measures, explains and repairs the geometry of embedding spaces.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(scan)
app.command()(catalogue)
app.command()(compare)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"isotrope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def main() -> None:
    """Run the command; what goes wrong on purpose is one sentence and exit code 2."""
    try:
        app()
    except IsotropeError as error:
        typer.echo(f"isotrope: {error}", err=True)
        sys.exit(2)
    except MemoryError:
        typer.echo("isotrope: out of memory; try fewer layers, a smaller --sample or a smaller --batch-size.", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("isotrope: stopped; with -o a scan can be continued by --resume.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
