"""The command `isotrope`: one file per subcommand, heavy imports inside the commands."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from typing import Any, NoReturn

import typer

from isotrope.cli.advise import advise
from isotrope.cli.build import build
from isotrope.cli.catalogue import catalogue
from isotrope.cli.compare import compare
from isotrope.cli.evaluate import evaluate
from isotrope.cli.figure import figure
from isotrope.cli.interrupts import Stopped
from isotrope.cli.repair import repair
from isotrope.cli.report import report
from isotrope.cli.scan import scan
from isotrope.cli.study import study
from isotrope.errors import IsotropeError
from isotrope.formats.printable import escape_controls
from isotrope.storage.redaction import mask_secrets
from isotrope.version import __version__

app = typer.Typer(
    name="isotrope",
    help="Measures, explains and repairs the geometry of embedding spaces.",
    epilog="Exit codes: 0 success; 1 a gate tripped, or isotrope itself failed; 2 bad input.",
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


#: The option that shows where an error comes from, and the variable of the environment that does the same.
_TRACEBACK, _VARIABLE = "--traceback", "ISOTROPE_TRACEBACK"


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"isotrope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
    traceback: bool = typer.Option(
        False, _TRACEBACK, help=f"Show where an error comes from; also behind a command, or with {_VARIABLE}=1."
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


#: What typer raises for options and arguments that it cannot read; its own name for it has moved between versions.
_WrongUsage: Any = typer.BadParameter.__base__


def _raise_stopped(number: int, _: object) -> NoReturn:
    raise Stopped(number)


def main() -> None:
    """Run the command; whatever goes wrong is one sentence on standard error, and its traceback where it is asked for.

    The exit code is 2 where the input or an option cannot be used, 1 where isotrope itself failed or a gate tripped.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _raise_stopped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no bars still shows the words
            stream.reconfigure(errors="replace")
    warnings.formatwarning = _format_warning
    try:
        code = app(_remove_traceback(sys.argv[1:]), standalone_mode=False)
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
        what = "the result" if error.filename is None else repr(os.fsdecode(error.filename))
        _leave(2, f"{error.strerror or error}: {what} could not be read or written.")
    except UnicodeEncodeError as error:
        _leave(2, f"{error.object[:200]!r} holds a name that is not {error.encoding}; rename the file or folder.")
    except Exception as error:  # whatever nobody thought of
        _leave(1, _describe_defect(error))
    sys.exit(code or 0)


def _describe_defect(error: Exception) -> str:
    """The sentence for an error that isotrope should have foreseen."""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".: ")
    return f"this is a defect of isotrope, not of your input ({what}); {_TRACEBACK} shows where: please report it."


def _remove_traceback(arguments: list[str]) -> list[str]:
    """The arguments without the option that may stand anywhere among them."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [argument for argument in arguments[:end] if argument != _TRACEBACK] + arguments[end:]


def _wants_traceback() -> bool:
    return _remove_traceback(sys.argv[1:]) != sys.argv[1:] or os.environ.get(_VARIABLE, "") not in ("", "0")


def _leave(code: int, sentence: str) -> NoReturn:
    """Print why, and end; while an error is handled, with its traceback where it is asked for."""
    from isotrope.cli.output import echo, print_problem

    with suppress(OSError):
        if _wants_traceback():
            echo(mask_secrets(traceback.format_exc(), sys.argv).rstrip(), err=True)
        print_problem(mask_secrets(sentence, sys.argv))
    sys.exit(code)


_PLAIN_WARNING = warnings.formatwarning


def _format_warning(*arguments: Any, **options: Any) -> str:
    return escape_controls(_PLAIN_WARNING(*arguments, **options))
