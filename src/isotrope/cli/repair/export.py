"""isotrope repair export: write a saved repair for another library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isotrope.cli.options import Json
from isotrope.cli.output import console, print_json
from isotrope.cli.progress import print_warnings


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved repair.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, or folder of the model; a new one.")],
    to: Annotated[str, typer.Option(help="numpy, torch, onnx, faiss or sentence-transformers.")],
    model: Annotated[
        str | None, typer.Option(help="sentence-transformers: model to fold the repair into, hub id or folder.")
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="sentence-transformers: fitted on pooled rows, or on encoded ones, as encode gives them.",
            show_default="pooled",
        ),
    ] = None,
    json: Json = False,
) -> None:
    from isotrope.integrations import KINDS
    from isotrope.integrations import export as write
    from isotrope.repairs import load_repair

    kind = KINDS.get(to)
    fitted = load_repair(folder)
    options: dict[str, Any] = {} if rows is None else {"rows": rows}
    with print_warnings():
        write(fitted, to, output, model=model, **options)
    if json:
        document = {"repair": fitted.name, "kind": to, "output": str(output), "what": kind.what, "read": kind.read}
        print_json(document)
        return
    out = console()
    out.print(f"{fitted!r} as {kind.what}, in {output}.")
    out.print(f"Read it by {kind.read.replace('path', repr(str(output)))}; it needs no isotrope.")
