"""isotrope advise: whether to repair, how strongly and in which layers, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli import space_options as space

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.advice.advice import Advice

_ROWS = "Rows"


def advise(
    input: Annotated[str | None, typer.Argument(help="Vectors, a text, or a model; found out from its kind.")] = None,
    model: space.Model = None,
    revision: space.Revision = None,
    gguf_file: space.GgufFile = None,
    text: space.Text = None,
    vectors: space.Vectors = None,
    column: space.Column = None,
    split: space.Split = None,
    layers: space.Averaged = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="mean, cls, last, max.", show_default="mean, or a sentence model's own", rich_help_panel=_ROWS
        ),
    ] = None,
    max_length: space.MaxLength = None,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    trust_remote_code: space.TrustRemoteCode = False,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the advice and its repair.", show_default=False),
    ] = None,
    json: space.Json = False,
) -> None:
    """Say which layers and which repair, how strongly, or none; nothing needs a label.

    With a model and a text the evidence is how well cosines agree with known likeness; with vectors alone their shape.
    """
    given = locals()
    from dataclasses import fields

    from isotrope.advice.advise import advise as ask
    from isotrope.cli.inputs import sort_out
    from isotrope.cli.output import echo, echo_json
    from isotrope.cli.terminal import Bar, warnings_told
    from isotrope.errors import StoreError
    from isotrope.sources.input import Input

    if output is not None and output.exists():
        raise StoreError(f"{str(output)!r} is there already, and is never written over; give a new folder with -o.")
    place = sort_out(input, model=model, text=text, corpus=None, vectors=vectors)
    known = {f.name: f.default for f in fields(Input)}
    more = {name: value for name, value in given.items() if name in known and value != known[name]}
    for name in ("model", "text", "vectors"):
        more[name] = getattr(place, name)
    with Bar(quiet=json) as bar, warnings_told():
        found = ask(**more, seed=seed, progress=bar)
    if output is not None:
        _save(found, output)
    if json:
        import json as library

        echo_json(library.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False))
        return
    show(found)
    if output is not None:
        echo(_saved(found, output))


def _save(found: Advice, folder: Path) -> None:
    """advice.json, and what it advises: a repair, token weights."""
    import json as library

    from isotrope.storage.files import write_folder, write_text

    def fill(beside: Path) -> None:
        write_text(beside / "advice.json", library.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n")
        if found.repair is not None:
            found.repair.save(beside / "repair")
        if found.token_weights is not None:
            found.token_weights.save(beside / "token_weights.safetensors")

    write_folder(folder.absolute(), fill)


def _saved(found: Advice, folder: Path) -> str:
    if found.repair is None:
        return f"\nWritten to {folder}/advice.json; no repair is advised, so there is none."
    return f"\nWritten to {folder}/: isotrope repair show {folder}/repair says what the repair does."


def show(found: Advice) -> None:
    """The advice in a few plain lines, and a table of what was tried."""
    from rich.text import Text

    from isotrope.cli.output import console

    out = console()
    out.print(Text(f"{found.words[0].upper()}{found.words[1:]}.", style="bold"), soft_wrap=True)
    for reason in found.reasons:
        out.print(Text(reason), soft_wrap=True)
    if found.trials:
        out.print()
        _print_trials(out, found)
        out.print(f"likeness: correlation over 1,500 pairs; from {found.rows:,} texts, seed {found.seed}", style="dim")


def _print_trials(out: Console, found: Advice) -> None:
    from isotrope.advice.candidate import BASELINE, REPAIRED
    from isotrope.cli.tables import Column, print_table

    numbers = {"likeness": 0, "repaired": 0, "gain": 0, "halves": 3, "halves repaired": 4, "mean cosine": 2}
    columns = [Column("layers"), Column("tokens", rank=1)]
    columns += [Column(title, right=True, rank=rank) for title, rank in numbers.items()]
    rows = []
    for candidate in found.trials:
        gain = candidate.gain
        halves = ["-", "-"]
        if candidate.halves is not None:
            halves = [f"{candidate.halves.scores[name].value:.3f}" for name in (BASELINE, REPAIRED)]
        cells = [
            candidate.layers,
            "weighted" if candidate.weighted else "alike",
            f"{candidate.similarity.scores[BASELINE].value:.3f}",
            f"{candidate.repaired_score:.3f}",
            f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})",
            *halves,
            f"{candidate.geometry.mean_cosine:.2f}",
            "repair" if candidate.helps else "leave alone",
        ]
        rows.append(cells)
    print_table(out, [*columns, Column("")], rows)
