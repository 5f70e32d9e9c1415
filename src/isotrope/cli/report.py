"""isotrope report: one HTML file that shows what a run found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.options import Json
from isotrope.cli.output import echo, print_json
from isotrope.cli.progress import Bar


def report(
    run: Annotated[Path, typer.Argument(help="Run folder of a scan.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write.", show_default="report.html in the run folder"),
    ] = None,
    tsne: Annotated[
        bool, typer.Option("--tsne", help="Place points by t-SNE too, which takes minutes, once; needs openTSNE.")
    ] = False,
    json: Json = False,
) -> None:
    from isotrope.report import write_report

    with Bar(quiet=json) as bar:
        written = write_report(run, output, tsne=tsne, progress=bar)
    if json:
        print_json({"run": str(run), "report": str(written), "bytes": written.stat().st_size})
    else:
        echo(f"Report: {written}")
