"""isotrope compare: what changed between runs."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.gates import check_decided, conclude, describe_outcomes, write_junit
from isotrope.cli.options import Json, OptionGroup, derive_options
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar
from isotrope.cli.tables import Column, print_table
from isotrope.cli.terminal import format_number
from isotrope.formats.names import is_vectors, name_layers
from isotrope.options import ScanOptions
from isotrope.storage.redaction import mask_secrets

if TYPE_CHECKING:
    from isotrope.findings import Findings
    from isotrope.runs.comparison import Alignment, Change, Comparison
    from isotrope.runs.layer_tests import LayerTests


#: What options say differently from those of a scan.
_CHANGES: dict[str, dict[str, Any]] = {
    "measures": {"help": "Only these groups or names, see isotrope catalogue.", "panel": None, "shown": "all"},
    "seed": {"help": "Of sampled vectors, permutations and resamples.", "panel": None},
}


@derive_options(after={"seed": "html"})
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two run folders or files of vectors, or more; the first is compared with the others."),
    ],
    options: Annotated[ScanOptions, OptionGroup(ScanOptions, "measures seed", changes=_CHANGES)],
    layers: Annotated[str | None, typer.Option(help="Only these, e.g. 0,6,-1.", show_default="all")] = None,
    align: Annotated[
        str | None,
        typer.Option(
            help="Pair layers by relative depth or by name: depth, name.",
            show_default="name where the runs have the same layers, else depth",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help='Exit with 1 where true, e.g. "mean_shift.effect > 0.2", "change.mean_cosine > 0.05", '
            '"now.hubness > 2".'
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the outcomes of gates as JUnit XML.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the runs side by side into this HTML file.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """The last layers, or those of --layers, are also tested for a shift of mean, covariance and neighbourhoods."""
    from isotrope.cli.compared_runs import add_measures, compute_tests, open_runs, parse_gates, select_changes
    from isotrope.report.build import write_tested_comparison
    from isotrope.runs.compared_gates import decide_gates
    from isotrope.runs.comparison import compare as compare_runs

    gates = parse_gates(fail_on, runs, junit)
    names = [mask_secrets(run) for run in runs]
    with Bar(quiet=json) as bar, open_runs(runs, add_measures(options, gates), bar) as opened:
        found = [run.findings() for run in opened]
        comparisons = compare_runs(found, align)
        selected = [select_changes(comparison, found[0], options.measures, layers) for comparison in comparisons]
        tests = [
            compute_tests(opened[0], other, comparison, gates, layers, found[0], options.seed, bar)
            for other, comparison in zip(opened[1:], comparisons, strict=True)
        ]
        outcomes = decide_gates(gates, (found[0], found[1]), comparisons[0], tests[0])
        if junit is not None:
            write_junit(junit, f"isotrope compare {' '.join(names)}", gates, outcomes)
        check_decided(outcomes)
        if html is not None:
            write_tested_comparison(opened, html, comparisons, tests, bar)
    if json:
        print_json(_describe(names, comparisons, selected, tests) | {"gates": describe_outcomes(gates, outcomes)})
    else:
        for name, other, changes, comparison, tested in zip(
            names[1:], found[1:], selected, comparisons, tests, strict=True
        ):
            _show(f"{names[0]} -> {name}", found[0], other, changes, comparison.alignment, tested)
        if html is not None:
            echo(f"\nSide by side: {html}")
    conclude(outcomes)


def _describe(
    names: list[str], comparisons: list[Comparison], selected: list[list[Change]], tests: list[list[LayerTests]]
) -> dict[str, Any]:
    """The comparison as plain data."""
    before, *after = names
    return {
        "before": before,
        "after": after,
        "alignments": [{"run": run, **asdict(x.alignment)} for run, x in zip(after, comparisons, strict=True)],
        "changes": [
            {"run": run, **c.describe()} for run, changes in zip(after, selected, strict=True) for c in changes
        ],
        "tests": [
            {"run": run, **record}
            for run, layers in zip(after, tests, strict=True)
            for layer in layers
            for record in layer.describe()
        ],
    }


def _show(
    title: str,
    first: Findings,
    other: Findings,
    changes: list[Change],
    alignment: Alignment,
    tests: list[LayerTests],
) -> None:
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
    for tested in tests:
        place = f"Layer {first.layer_names.get(str(tested.layer), str(tested.layer))}: " if layered else ""
        sentences = tested.list_sentences()
        out.print(f"{place}{sentences[0]}", style="dim")
        for sentence in sentences[1:]:
            out.print(f"  {sentence}")
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
