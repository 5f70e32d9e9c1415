"""isotrope repair show: what a saved repair does, before it is applied to anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from isotrope.cli.options import SPACE, Json, derive_options, make_space_options
from isotrope.cli.output import console, print_json
from isotrope.cli.progress import Bar
from isotrope.cli.tables import Column, print_table
from isotrope.cli.terminal import choose_bar_width, format_bar, format_fixed, format_number
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.repairs import Repair
    from isotrope.repairs.effects.before_after import BeforeAfter

_WHAT = "What to show"

#: Directions drawn at most, the strongest and ever sparser ones below.
_LINES = 14


@derive_options
def show(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved repair.")],
    input: Annotated[
        str | None,
        typer.Argument(
            help="Rows to try it on, or a scan's run folder; every measure and old cut-offs need them.",
            show_default="moments fitted on",
        ),
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(help="Groups or names, see isotrope catalogue.", show_default="all", rich_help_panel=_WHAT),
    ] = None,
    sample: Annotated[int, typer.Option(help="Rows that are repaired to try it.", rich_help_panel=_WHAT)] = 5_000,
    seed: Annotated[int, typer.Option(help="Which rows, and pairs of rows.", rich_help_panel=_WHAT)] = 0,
    reading: Annotated[Input, make_space_options(SPACE)],
    json: Json = False,
) -> None:
    from isotrope.cli.inputs import check_unused, find_run_layer, open_space
    from isotrope.repairs import Affine, load_repair, saved_summary
    from isotrope.repairs.effects.before_after import before_after
    from isotrope.runs.run import Run

    fitted = load_repair(folder)
    table: BeforeAfter | None = None
    if input is not None and Run(input).finished:
        check_unused(reading, f"the run {input!r}")
        summary = saved_summary(input, find_run_layer(input, reading.layers)[0])
        with Bar(quiet=json) as bar:
            table = before_after(fitted, summary, measures, sample=sample, seed=seed, progress=bar)
    elif (input, reading.model, reading.text, reading.vectors) != (None,) * 4:
        with Bar(quiet=json) as bar:
            bar("opening", 0, None)
            with open_space(input, reading) as source:
                rows = source.with_progress(lambda done, total: bar(f"reading {source.unit}", done, total))
                table = before_after(fitted, rows, measures, sample=sample, seed=seed, progress=bar)
    else:
        check_unused(reading, "showing a repair without rows", layer=True)
        if isinstance(fitted.map_, Affine) or measures is not None:
            table = before_after(fitted, measures=measures, seed=seed)
    if json:
        document = describe_repair(fitted) | {"spectrum": None, "gains": None} | _describe_spectrum(fitted)
        document |= {"effects": None if table is None else table.to_dict()}
        print_json(document)
    else:
        _print(fitted, table, folder)


def _describe_spectrum(fitted: Repair) -> dict[str, Any]:
    """The strength of each direction and what it is multiplied by, where a repair has such."""
    from isotrope.repairs.linear import LinearRepair

    if not isinstance(fitted, LinearRepair):
        return {}
    return {"spectrum": fitted.spectrum_.tolist(), "gains": fitted.gains_.tolist()}


def _print(fitted: Repair, table: BeforeAfter | None, folder: Path) -> None:

    out = console()
    title = Text.assemble((repr(fitted), "bold"), f"  {fitted.map_.width} to {fitted.map_.columns} columns")
    out.print(title)
    out.print(describe_fit(fitted.fitted_on_), style="dim")
    print_safety(out, fitted)
    if spectrum := _describe_spectrum(fitted):
        _print_gains(out, spectrum["spectrum"], spectrum["gains"])
    if table is None:
        out.print(f"\nWhat it does depends on each row: isotrope repair show {folder} INPUT tries it on rows.")
        return
    _print_changes(out, table)
    if table.sampled:
        _print_cutoffs(out, table)
    else:
        out.print(
            f"\nAll measures, and what old cosine cut-offs become: isotrope repair show {folder} INPUT.", style="dim"
        )


def select_directions(count: int, lines: int = _LINES) -> list[int]:
    """Directions to draw: the first, the last, and ever sparser ones between.

    >>> select_directions(100, 6)
    [0, 2, 5, 15, 39, 99]
    """
    if count <= lines:
        return list(range(count))
    places = (round(math.exp(math.log(count) * i / (lines - 1))) - 1 for i in range(lines))
    return sorted(set(places))


def _print_gains(out: Console, spectrum: list[float], gains: list[float]) -> None:
    """A line for some directions: strength before, gain, strength after, both drawn to one scale each."""
    after = [strength * gain for strength, gain in zip(spectrum, gains, strict=True)]
    largest, largest_after = (max(map(abs, values), default=0.0) or 1.0 for values in (spectrum, after))
    columns = [Column("direction", right=True), Column("strength", rank=1), Column("gain", right=True), Column("after")]
    wide, rows = choose_bar_width(out), []
    for i in select_directions(len(spectrum)):
        before = f"{format_number(spectrum[i]):>9} {format_bar(spectrum[i] / largest, wide)}"
        changed = f"{format_number(after[i]):>9} {format_bar(abs(after[i]) / largest_after, wide)}"
        rows.append([str(i + 1), before, f"× {format_number(gains[i])}", changed])
    out.print()
    print_table(out, columns, rows)


def _print_changes(out: Console, found: BeforeAfter) -> None:

    columns = [Column("measure", wraps=24), Column("before", right=True), Column("after", right=True)]
    columns += [Column("better", rank=1), Column("how", wraps=16, rank=2)]
    rows = []
    for c in found.changes:
        if math.isnan(c.before) and math.isnan(c.after):
            continue
        name = c.measure if c.variant == "definition" else f"{c.measure} ({c.variant})"
        how = c.reason or (f"exact, {c.n:,} rows" if c.by == "moments" else f"{c.n:,} sampled rows")
        rows.append([name, format_number(c.before), format_number(c.after), c.better or "", how])
    out.print()
    print_table(out, columns, rows)
    if without := [c for c in found.changes if math.isnan(c.before) and math.isnan(c.after)]:
        reasons = ", ".join(dict.fromkeys(f"{c.measure} ({c.reason})" for c in without))
        out.print(f"without a value: {reasons}", style="dim")


def _print_cutoffs(out: Console, found: BeforeAfter) -> None:

    titles = ("old cosine cut-off", "becomes", "pairs above", "of which the same pairs")
    rows = []
    for c in found.cutoffs:
        kept = "-" if math.isnan(c.kept) else f"{c.kept:.0%}"
        rows.append([f"{c.before:g}", format_fixed(c.after), f"{round(c.share * c.pairs):,}", kept])
    out.print()
    print_table(out, [Column(title, right=True) for title in titles], rows)
    if found.cutoffs:
        out.print(f"from {found.cutoffs[0].pairs:,} pairs of sampled rows, seed {found.seed}", style="dim")


def print_safety(out: Console, fitted: Repair) -> None:
    """Print what a repair does to lengths, how searches survive rounding, and what is risky, a line each."""
    from isotrope.repairs import find_risks

    words = {"input": "before the repair", "output": "after the repair", "both": "before and after the repair"}
    if fitted.normalizes_ in words:
        out.print(f"Rows are divided by their length {words[fitted.normalizes_]}.")
    if fitted.query_rounding_ is not None:
        out.print(str(fitted.query_rounding_))
    for risk in find_risks(fitted):
        out.print(f"Note: {risk}")


def describe_repair(fitted: Repair) -> dict[str, Any]:
    """Describe a fitted repair as plain data."""
    from isotrope.repairs import Gains, find_risks
    from isotrope.repairs.linear import LinearRepair

    rounding = fitted.query_rounding_
    return {
        "repair": fitted.name,
        "parameters": fitted.get_params(),
        "width": fitted.map_.width,
        "columns": fitted.map_.columns,
        "fitted_on": fitted.fitted_on_,
        "normalize": fitted.normalizes_,
        "query_rounding": None if rounding is None else rounding.to_dict(),
        "gain_summary": Gains.of(fitted).to_dict() if isinstance(fitted, LinearRepair) else None,
        "risks": find_risks(fitted),
    }


def describe_fit(fitted_on: Mapping[str, Any]) -> str:
    """Describe in words what a repair was fitted on.

    >>> describe_fit({"rows": 5, "zero_rows": 2, "sources": [{"model": "bert", "pooling": "mean", "layers": [6]}]})
    'fitted on 5 rows (2 of zeros left out) of bert, layer 6, pooling mean'
    """
    words = f"fitted on {fitted_on['rows']:,} rows"
    left_out = {"of zeros": fitted_on.get("zero_rows"), "not finite": fitted_on.get("nonfinite_rows")}
    if any(left_out.values()):
        words += f" ({', '.join(f'{n:,} {what}' for what, n in left_out.items() if n)} left out)"
    return words + "".join(f" of {_describe_source(source)}" for source in fitted_on.get("sources", []))


def _describe_source(source: Mapping[str, Any]) -> str:
    if source.get("model") is None:
        return ", ".join(str(file.get("path", file)) for file in source.get("files", [])[:3]) or "vectors"
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    layers = ", ".join(map(str, source.get("layers", [])))
    return f"{source['model']}{over}, layer {layers}, " + (
        f"pooling {source['pooling']}" if source.get("pooling") else "tokens as rows"
    )
