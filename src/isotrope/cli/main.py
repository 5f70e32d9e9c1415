"""The command `isotrope`: one file per subcommand, heavy imports inside the commands."""

from __future__ import annotations

import io
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

import typer

from isotrope import __version__
from isotrope.cli.advise import advise
from isotrope.cli.build import build
from isotrope.cli.catalogue import catalogue
from isotrope.cli.compare import compare
from isotrope.cli.evaluate import evaluate
from isotrope.cli.figure import figure
from isotrope.cli.repair import repair
from isotrope.cli.report import report
from isotrope.cli.scan import scan
from isotrope.cli.stopping import Stopped
from isotrope.cli.study import study
from isotrope.errors import IsotropeError
from isotrope.secrets import masked

app = typer.Typer(
    name="isotrope",
    help="Measures, explains and repairs the geometry of embedding spaces.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(scan)
app.command()(catalogue)
app.command()(compare)
app.command()(advise)
app.command()(build)
app.command()(report)
app.command()(figure)
app.add_typer(repair)
app.add_typer(evaluate)
app.add_typer(study)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"isotrope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


#: What typer raises for options and arguments that it cannot read; its own name for it has moved between versions.
_WrongUsage: Any = typer.BadParameter.__base__


def _stop(number: int, _: object) -> NoReturn:
    raise Stopped(number)


def main() -> None:
    """Run the command; what goes wrong on purpose is one sentence on standard error and exit code 2."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no bars still shows the words
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except _WrongUsage as error:
        command = error.ctx.command_path if error.ctx else "isotrope"
        _leave(2, f"{error.format_message().rstrip('.')}; see {command} --help.")
    except IsotropeError as error:
        _leave(2, str(error))
    except MemoryError:
        _leave(2, "out of memory; try fewer layers, a smaller --sample or a smaller --batch-size.")
    except Stopped as stopped:
        _leave(128 + stopped.number, str(stopped))
    except OSError as error:
        _leave(2, f"{error.strerror or error}: the result could not be written.")
    sys.exit(code or 0)


def _leave(code: int, sentence: str) -> NoReturn:
    with suppress(OSError):
        typer.echo(f"isotrope: {masked(sentence, sys.argv)}", err=True)
    sys.exit(code)
