"""isotrope figure: figures for print from a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from isotrope.cli.options import Json
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar
from isotrope.errors import InputError

_ANY = "any measure of the catalogue in each layer, with its 95 % interval and what isotropic rows would give"


def figure(
    run: Annotated[Path | None, typer.Argument(help="Run folder of a scan.", show_default=False)] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="Figure, see --list, or a measure, for its curve over the layers.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .pdf, .svg or .png; one that is there is replaced."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(help="Layer of a figure of one layer, e.g. 6 or -1.", show_default="middle or last, see --list"),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Say what each figure shows, answers and needs.")] = False,
    json: Json = False,
) -> None:
    if list_:
        _print_list(json=json)
        return
    from isotrope.figures.draw import check_file, find_figure, format_caption, open_run, render, save

    if run is None or name is None or output is None:
        raise InputError("expected a run folder, the name of a figure and -o FILE; isotrope figure --list names them.")
    record = find_figure(name)
    check_file(output)
    with Bar(quiet=json) as bar:
        bar(f"drawing {name}", 0, None)
        data = open_run(run, record, layer)
        made = render(record, data)
        save(made, output)
    if json:
        width, height = made.get_size_inches()
        size = {"width_inches": float(width), "height_inches": float(height)}
        of = {
            "layer": data.layer if record.layer else None,
            "file": str(output),
            "caption": format_caption(record, data),
        }
        document = {**record.to_dict(), **size, **of}
        print_json(document)
        return
    echo(f"{output}: {format_caption(record, data)}")


def _print_list(*, json: bool) -> None:
    from isotrope.figures import FIGURES

    known = sorted(FIGURES, key=lambda record: record.name)
    if json:
        print_json([record.to_dict() for record in known])
        return

    out = console()
    for record in known:
        facts = record.to_dict()
        needs = [*facts["needs"], *([f"readings of {', '.join(record.measures)}"] if record.measures else [])]
        out.print(Text.assemble((record.name, "bold"), f"  {record.shows}"))
        out.print(f"    answers  {record.answers}", style="dim")
        out.print(f"    needs    {'; '.join(needs) or 'readings'}", style="dim")
        if record.layer:
            out.print(f"    layer    the {record.layer} one, or --layer", style="dim")
    out.print(Text.assemble(("MEASURE", "bold"), f"  {_ANY}"))
    out.print("    answers  with mean_cosine Godey et al. 2023 (anisotropy), Figs. 1 to 4", style="dim")
