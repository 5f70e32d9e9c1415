"""What evaluations without training have in common: their options, the call, the file of the result, and its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from isotrope.cli.options import ENDPOINT, OWN_POOLING, ROWS, SPACE_CHANGES, OptionGroup, check_new, parse_names
from isotrope.cli.output import echo, print_json
from isotrope.cli.progress import Bar, print_warnings
from isotrope.errors import StoreError
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.evaluation.result import PointDifference

_ENDINGS = (".json", ".csv")

RepairNames: TypeAlias = Annotated[
    str, typer.Option(help="softdecay, softdecay:alpha=-0.2, whitening:strength=0.5, folders; with commas between.")
]
ResamplingSeed: TypeAlias = Annotated[int, typer.Option(help="Of resamples and swaps.")]
ResultFile: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write, .json or .csv.", show_default=False)
]

#: The heading that options on vectors stand under.
VECTORS = "Vectors and ids"

VectorColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column or array of vectors, where there are several.", rich_help_panel=VECTORS, show_default=False
    ),
]
IdColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Ids of documents: a column, or FILE or FILE:COLUMN with one for each row.",
        rich_help_panel=VECTORS,
        show_default="_id or id, else row numbers",
    ),
]
QueryIdColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The same for queries.", rich_help_panel=VECTORS, show_default="the same column"),
]


def make_evaluation_options(*, layers: Mapping[str, Any], pooling: str) -> OptionGroup:
    """Make the options on the space of an evaluation, where each text has one row.

    Args:
        layers: What is said of the option on layers, besides the help.
        pooling: The help of the option on pooling.
    """
    names = f"model {ENDPOINT} layers pooling special_tokens revision gguf_file max_length batch_size device"
    changes = {
        "layers": {"help": "Averaged, e.g. 1,-1.", **layers},
        "pooling": {"help": pooling, "shown": OWN_POOLING},
        "batch_size": SPACE_CHANGES["batch_size"],
    }
    return OptionGroup(Input, f"{names} trust_remote_code", ROWS, changes)


def run_evaluation(
    evaluate: Callable[..., Any],
    show: Callable[[Any], None],
    *,
    repair: str,
    output: Path | None,
    json: bool,
    **options: Any,
) -> None:
    """Evaluate, write the result, whole or not at all, and print it.

    Args:
        evaluate: Computes the result.
        show: Prints the result for people.
        repair: The repairs, with commas between.
        output: The file to write, JSON with everything or CSV with the scores; None for no file.
        json: Whether to print JSON instead.
        options: Further arguments of `evaluate`.
    """
    check_result_file(output)
    with Bar(quiet=json) as bar, print_warnings():
        found = evaluate(repairs=parse_names(repair), **options, progress=bar)
    if output is not None:
        _write(found, output)
    if json:
        print_json(found.to_dict())
        return
    show(found)
    if output is not None:
        echo(f"\nWritten to {output}.")


def check_result_file(path: Path | None) -> None:
    """Raise an error for a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() not in _ENDINGS:
        raise StoreError(f"cannot write {str(path)!r}; give a file that ends in {' or '.join(_ENDINGS)}.")
    check_new(path, "file")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name} in; make it first.")


def _write(found: Any, path: Path) -> None:
    from isotrope.formats.printable import format_csv
    from isotrope.storage.files import write_text

    write_text(path, found.to_json() + "\n" if path.suffix.lower() == ".json" else format_csv(found.to_frame()))


def format_points(value: float, *, sign: bool = False) -> str:
    """Points with two decimals, a dash where there are none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"


def format_interval(of: Any, *, sign: bool = False) -> str:
    """The interval of a score or a difference."""
    return f"{format_points(of.low, sign=sign)} to {format_points(of.high, sign=sign)}"


def format_score(value: float, change: PointDifference | None) -> str:
    """A score and, in brackets, what a repair changes, with a star where that is significant."""
    words = ""
    if change is not None:
        words = f"({format_points(change.difference, sign=True)}{'*' if change.significant else ''})"
    return f"{format_points(value)} {words:>9}"


def print_heading(out: Console, scores: Sequence[Any], what: str, own: str) -> None:
    """Print of which model scores are, what they are, and on which texts repairs were fitted.

    Args:
        out: Where to print.
        scores: The scores.
        what: What they are, in words.
        own: What the set's own texts are.
    """
    first = scores[0]
    space = "vectors" if first.layers is None else f"layers {first.layers}, pooling {first.pooling}"
    out.print(f"{first.model}, {space}", style="bold")
    out.print(f"{what}{describe_fit_texts((score.fitted_on for score in scores), own)}.", style="dim")


def describe_fit_texts(texts: Iterable[str | None], own: str) -> str:
    """On which texts repairs were fitted, nothing where there is none. own: what the set's own texts are.

    >>> describe_fit_texts([None, "own"], "the documents")
    '; repairs fitted on the documents'
    """
    words = sorted({own if text == "own" else text for text in texts if text is not None})
    return f"; repairs fitted on {', '.join(words)}" if words else ""


def describe_change(change: PointDifference) -> str:
    """What a repair changes, in a sentence."""
    where = "over all sets" if change.set == "mean" else f"on {change.set}"
    if change.reason is not None:
        return f"{change.repair}: no result {where}, because {change.reason}."
    words = "no difference beyond chance"
    if change.significant:
        words = "better than no repair" if change.difference > 0 else "worse than no repair"
    points = f"{format_points(change.difference, sign=True)} points ({format_interval(change, sign=True)}"
    return f"{change.repair}: {words} {where}: {points}; p {change.p:.2g}, corrected {change.p_corrected:.2g})."
