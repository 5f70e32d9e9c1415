"""The command `isotrope`: its subcommands, one module each, and what it says when something goes wrong."""

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

from isotrope.cli.group import make_group, print_help
from isotrope.cli.progress import Stopped
from isotrope.errors import IsotropeError
from isotrope.formats.printable import escape_controls
from isotrope.storage.redaction import mask_secrets
from isotrope.version import __version__

COMMANDS = {
    "scan": "Measure every layer of a model over text, images or sounds, or vectors, in one pass.",
    "catalogue": "List the measures: formula, range, which way is better, blind spot, paper.",
    "calibrate": "Find the cosine cut-off for a rate of false accepts, a precision, or another model's cut-off.",
    "compare": "Say what changed between runs, by how much, and whether beyond its interval.",
    "advise": "Say which layers and which repair, how strongly, or none; nothing needs a label.",
    "build": "Take the advice on a model and write a sentence-transformers folder that loads without isotrope.",
    "report": "Make one HTML file that opens anywhere and asks the network for nothing.",
    "figure": "Draw a figure of a paper from a run's own data, as wide as a column or a page, for every colour vision.",
    "repair": "Fit a repair once, see what it does, apply it to any rows, take it anywhere.",
    "evaluate": "Score a model on real tasks, without and with repairs, or fine-tuned.",
    "study": "Repeat a paper's experiments on your models, its numbers beside yours.",
}

app = make_group(
    "isotrope",
    COMMANDS,
    package="isotrope.cli",
    help="Measures, explains and repairs the geometry of embedding spaces.",
    epilog="Exit codes: 0 success; 1 a gate tripped, or isotrope itself failed; 2 bad input.",
    pretty_exceptions_enable=False,
)

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
    print_help(context)


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
