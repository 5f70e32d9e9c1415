"""Options on where rows are read and models run: in this process, or on a cluster."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

_PANEL = "Engine"

Engine: TypeAlias = Annotated[
    str, typer.Option(help="local (this process) or ray (a cluster).", rich_help_panel=_PANEL)
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Of a Ray cluster: auto, HOST:PORT.", show_default="$RAY_ADDRESS, or one here", rich_help_panel=_PANEL
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Workers of one CPU each.", show_default="all that have room", rich_help_panel=_PANEL),
]
GpusPerWorker: TypeAlias = Annotated[
    float, typer.Option(help="GPUs of each worker, e.g. 1 or 0.5.", rich_help_panel=_PANEL)
]
