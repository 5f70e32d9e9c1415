"""isotrope compare: what changed between runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from isotrope.comparison import Change


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two run folders or more; the first is compared with the others.")],
    measures: Annotated[str | None, typer.Option(help="Only these.", show_default="all")] = None,
    layers: Annotated[str | None, typer.Option(help="Only these.", show_default="all")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what changed between runs, by how much, and whether beyond its interval."""
    from isotrope.comparison import compare as compared
    from isotrope.measures import select
    from isotrope.store import Run

    found = [Run(folder).findings() for folder in runs]
    names = {m.name for m in select(measures)} if measures else None
    wanted = set(layers.split(",")) if layers else None
    for folder, changes in zip(runs[1:], compared(found), strict=True):
        kept = [
            c
            for c in changes
            if (names is None or c.measure in names) and (wanted is None or str(c.layer) in wanted)
        ]
        if json:
            import json as library

            document = {"before": str(runs[0]), "after": str(folder), "changes": [_plain(c) for c in kept]}
            typer.echo(library.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        else:
            _show(str(runs[0]), str(folder), kept)


def _plain(c: Change) -> dict[str, Any]:
    import math

    numbers = {"before": c.before, "after": c.after, "difference": c.difference}
    clean = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
    return {"layer": c.layer, "measure": c.measure, "group": c.group, **clean, "beyond": c.beyond, "note": c.note}


def _show(before: str, after: str, changes: list[Change]) -> None:
    from rich.table import Table

    from isotrope.cli.terminal import console, number

    out = console()
    beyond = sum(c.beyond is True for c in changes)
    table = Table(box=None, pad_edge=False, title=None)
    for column in ("layer", "measure", "before", "after", "difference", ""):
        table.add_column(column, justify="left" if column in ("layer", "measure", "") else "right")
    words = {True: "beyond its interval", False: "within", None: "no interval"}
    for c in sorted(changes, key=lambda c: c.beyond is not True):
        layer = "" if c.layer is None else str(c.layer)
        cells = (number(c.before), number(c.after), number(c.difference, sign=True), words[c.beyond])
        table.add_row(layer, c.measure, *cells, style="bold" if c.beyond else None)
    out.print(f"{before} -> {after}: {beyond} of {len(changes)} readings changed beyond their interval.\n")
    out.print(table)
    if any(c.note for c in changes):
        out.print("\nThe runs have different numbers of rows: measures that depend on n are not comparable.", style="dim")
