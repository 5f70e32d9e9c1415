"""isotrope compare: what changed between runs."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.options import Json
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar
from isotrope.cli.tables import Column, print_table
from isotrope.cli.terminal import format_number
from isotrope.errors import InputError
from isotrope.formats.names import is_vectors, name_layers

if TYPE_CHECKING:
    from isotrope.findings import Findings
    from isotrope.runs.comparison import Alignment, Change


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two run folders or more; the first is compared with the others.")],
    measures: Annotated[
        str | None, typer.Option(help="Only these groups or names, see isotrope catalogue.", show_default="all")
    ] = None,
    layers: Annotated[str | None, typer.Option(help="Only these, e.g. 0,6,-1.", show_default="all")] = None,
    align: Annotated[
        str | None,
        typer.Option(
            help="Pair layers by relative depth or by name: depth, name.",
            show_default="name where the runs have the same layers, else depth",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the runs side by side into this HTML file.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    from isotrope.runs.comparison import compare as compare_runs
    from isotrope.runs.run import Run

    found = [Run(folder).findings() for folder in runs]
    comparisons = compare_runs(found, align)
    alignments = [comparison.alignment for comparison in comparisons]
    selected = [_select_changes(comparison, found[0], measures, layers) for comparison in comparisons]
    if html is not None:
        _write(runs, html, align, quiet=json)
    if json:
        before, *after = map(str, runs)
        document = {
            "before": before,
            "after": after,
            "alignments": [{"run": run, **asdict(x)} for run, x in zip(after, alignments, strict=True)],
            "changes": [
                {"run": run, **c.describe()} for run, changes in zip(after, selected, strict=True) for c in changes
            ],
        }
        print_json(document)
        return
    for folder, other, changes, alignment in zip(runs[1:], found[1:], selected, alignments, strict=True):
        _show(f"{runs[0]} -> {folder}", found[0], other, changes, alignment)
    if html is not None:
        echo(f"\nSide by side: {html}")


def _write(runs: list[Path], html: Path, align: str | None, *, quiet: bool) -> None:
    """The runs side by side as one HTML file."""
    from isotrope.report import write_comparison

    with Bar(quiet=quiet) as bar:
        write_comparison(runs, html, align=align, progress=bar)


def _select_changes(changes: list[Change], first: Findings, measures: str | None, layers: str | None) -> list[Change]:
    """The changes of the measures and layers asked for."""
    from isotrope.layers import resolve_layer
    from isotrope.measures import select

    if measures is not None:
        names = {m.name for m in select(measures)}
        changes = [c for c in changes if c.measure in names]
    if layers is not None:
        parts = layers.split(",")
        wanted = {str(resolve_layer(part, first.layers, first.layer_names, run="the first run")) for part in parts}
        changes = [c for c in changes if str(c.layer) in wanted]
    if not changes:
        raise InputError("the runs share no reading of these measures and layers; leave out --measures or --layers.")
    return changes


def _show(title: str, first: Findings, other: Findings, changes: list[Change], alignment: Alignment) -> None:
    """A summary, how the layers were paired, and a table of what is not the same, the surest first."""
    out = console()
    changed = [c for c in changes if c.difference and not math.isnan(c.difference)]
    words = {True: "beyond its interval", False: "within its interval", None: "no interval"}
    grouped = any(c.group for c in changed)
    layered = not (is_vectors(first) and is_vectors(other))  # vectors have no layers to name
    columns = [*([Column("layer")] if layered else []), Column("measure")]
    columns += [Column("group", wraps=24)] if grouped else []
    columns += [Column("before", right=True, rank=2), Column("after", right=True), Column("difference", right=True)]
    columns.append(Column("", wraps=8, rank=1))
    rows = []
    surest = sorted(changed, key=lambda c: (c.beyond is not True, c.beyond is None))
    for c in surest:
        layer = _format_layers(c, first, other, alignment)
        cells = [*([layer] if layered else []), c.measure, *([c.group or "all"] if grouped else [])]
        numbers = [format_number(c.before), format_number(c.after), format_number(c.difference, sign=True)]
        rows.append([*cells, *numbers, words[c.beyond]])
    out.print(title, style="bold")
    if first.verdict.word != other.verdict.word:
        out.print(f"Verdict: {first.verdict.word} -> {other.verdict.word}.")
    for sentence in _describe_alignment(first, other, alignment):
        out.print(sentence)
    counts = [sum(c.beyond is kind for c in changed) for kind in words]
    out.print(
        f"Of {len(changes)} readings {counts[0]} changed beyond their interval, {counts[1]} within it, "
        f"{counts[2]} without an interval; {len(changes) - len(changed)} did not change or have no value."
    )
    if changed:
        out.print()
        print_table(out, columns, rows, ["bold" if c.beyond else None for c in surest])
    if any(c.note for c in changed):
        out.print(
            "\nThe runs have different numbers of rows: measures that depend on n are not comparable.", style="dim"
        )


def _format_layers(c: Change, first: Findings, other: Findings, alignment: Alignment) -> str:
    """The layer of a change, and by depth the one that it is compared with."""
    if c.layer is None:
        return ""
    one, two = (run.layer_names.get(str(x), str(x)) for run, x in ((first, c.layer), (other, c.other_layer)))
    return f"{one} : {two}" if alignment.by == "depth" else one


def _describe_alignment(first: Findings, other: Findings, alignment: Alignment) -> list[str]:
    """How layers were paired where that is not plain, and which have no partner."""
    words = []
    if alignment.by == "depth":
        words.append(
            f"Layers are paired by relative depth ({len(first.layers)} and {len(other.layers)} layers); "
            "--align name pairs them by name."
        )
    for which, run, lonely in (("first", first, alignment.only_first), ("second", other, alignment.only_second)):
        if lonely:
            names = [[run.layer_names.get(str(x), str(x)) for x in layers] for layers in (lonely, run.layers)]
            words.append(f"Without a partner in the {which} run: {name_layers(*names)}.")
    return words
