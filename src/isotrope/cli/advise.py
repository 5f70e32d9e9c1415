"""isotrope advise: whether to repair, how strongly and in which layers, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from isotrope.cli.options import ENDPOINT, Json, Rows, check_new, derive_options, make_advice_options
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar, print_warnings
from isotrope.cli.tables import Column, print_table
from isotrope.options import find_changes
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.advice.advice import Advice

_SPACE = make_advice_options(
    f"model {ENDPOINT} revision gguf_file text vectors column split", help="mean, cls, last, max."
)


@derive_options
def advise(
    reading: Annotated[Input, _SPACE],
    input: Rows = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the advice and its repair.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """
    With a model and a text the evidence is how well cosines agree with known likeness; with vectors alone their shape.
    """
    from isotrope.advice.advise import advise as ask
    from isotrope.cli.inputs import resolve_input

    check_new(output, "folder")
    given = find_changes(resolve_input(input, reading))
    with Bar(quiet=json) as bar, print_warnings():
        found = ask(**given, seed=seed, progress=bar)
    if output is not None:
        _save(found, output)
    if json:
        print_json(found.to_dict())
        return
    show(found)
    if output is not None:
        echo(_describe_files(found, output))


def _save(found: Advice, folder: Path) -> None:
    """advice.json, and what it advises: a repair, token weights."""
    from isotrope.formats.json import format_json
    from isotrope.storage.files import write_folder, write_text

    def fill(folder: Path) -> None:
        write_text(folder / "advice.json", format_json(found.to_dict()) + "\n")
        if found.repair is not None:
            found.repair.save(folder / "repair")
        if found.token_weights is not None:
            found.token_weights.save(folder / "token_weights.safetensors")

    write_folder(folder.absolute(), fill)


def _describe_files(found: Advice, folder: Path) -> str:
    if found.repair is None:
        return f"\nWritten to {folder}/advice.json; no repair is advised, so there is none."
    return f"\nWritten to {folder}/: isotrope repair show {folder}/repair says what the repair does."


def show(found: Advice) -> None:
    """The advice in a few plain lines, and a table of what was tried."""
    out = console()
    out.print(Text(f"{found.words[0].upper()}{found.words[1:]}.", style="bold"))
    for reason in found.reasons:
        out.print(Text(reason))
    if found.trials:
        out.print()
        _print_trials(out, found)
        out.print(f"likeness: correlation over 1,500 pairs; from {found.rows:,} texts, seed {found.seed}", style="dim")


def _print_trials(out: Console, found: Advice) -> None:

    ranks = {"tokens": 1, "halves": 3, "halves repaired": 4, "mean cosine": 2}
    cells = [candidate.format_cells() for candidate in found.trials]
    columns = [Column(name, right=name not in ("layers", "tokens"), rank=ranks.get(name, 0)) for name in cells[0]]
    verdicts = ["repair" if candidate.helps else "leave alone" for candidate in found.trials]
    rows = [[*row.values(), verdict] for row, verdict in zip(cells, verdicts, strict=True)]
    print_table(out, [*columns, Column("")], rows)
