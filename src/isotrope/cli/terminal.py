"""What people see of findings in the terminal: the verdict, a small chart of the layers, what a scan would cost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from isotrope.cli.output import console, print_json
from isotrope.cli.row_listing import print_rows
from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from isotrope.findings import Findings, Reading
    from isotrope.plan import Plan
    from isotrope.sources.endpoint.estimate import RequestEstimate

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 24

#: Columns of a terminal from which on bars have their whole width.
_ROOMY = 100
_STYLES = {0: "green", 1: "yellow", 2: "dark_orange", 3: "red"}

#: What could not be read is named up to this number.
_NAMED = 5

#: Groups that are shown at most.
_GROUPS = 20

#: Notes that say how a value was taken, and warn of nothing.
_SETTINGS = re.compile(r"k = \d+, n = |[\d,]+ rows ask$")


def format_number(value: float, *, sign: bool = False) -> str:
    """A number in few digits, a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    shown = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"+{shown}" if sign and value > 0 else shown


def format_bar(value: float, width: int = _BAR) -> str:
    """A value between 0 and 1 as a bar of block characters.

    >>> format_bar(0.5, 4)
    '██'
    """
    if not math.isfinite(value):
        return ""
    eighths = round(min(1.0, max(0.0, value)) * width * 8)
    return _BLOCKS[8] * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def choose_bar_width(out: Console) -> int:
    """How wide a bar is in a table, at most."""
    return _BAR if out.width >= _ROOMY else _BAR // 2


def format_fixed(value: float) -> str:
    """A number between -1 and 1 with three decimals, a dash where there is none."""
    return f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else "-"


def show_findings(findings: Findings, folder: Path | None) -> None:
    """The verdict in words, the chart of layers, what to take with care, and where the results are."""
    out = console()
    out.print(_format_headline(findings))
    for statement in findings.verdict.statements:
        mark = "●" if statement.sure else "○"
        out.print(Text(f"{mark} {statement.text}", style=_STYLES[statement.level]))
    out.print()
    _print_chart(out, findings)
    _print_groups(out, findings)
    _print_variants(out, findings)
    print_rows(out, findings)
    for line in (*_describe_notes(findings), *_describe_undefined(findings)):
        out.print(line, style="dim")
    if folder is not None:
        out.print(
            f"\nResults: {folder}/ (report.html, findings.json, readings.csv, readings.parquet, tables/, statistics/)"
        )


#: What models read, in words.
_READ = {"text": "text", "image": "images", "audio": "sound"}


def _format_headline(findings: Findings) -> Text:
    from isotrope.report.headline import describe_left_out, describe_rows, describe_width

    source, count = findings.source, len(findings.layers)
    most, of = describe_rows(findings)
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    wide = f"{count} layers of {describe_width(source)}" if count > 1 else f"width {describe_width(source)}"
    text = Text()
    text.append(f"{findings.title}{over}", style="bold")
    text.append(f"  {most} rows{of}, {wide}", style="dim")
    if source.get("rows_are"):
        text.append(
            f"\n{source['class']} reads {_READ[source['modality']]}: rows are {source['rows_are']}", style="dim"
        )
    if source.get("layers_are"):
        text.append(f"\nlayers are {source['layers_are']}", style="dim")
    if left := describe_left_out(findings):
        text.append(f"\nleft out: {left}", style="dim")
    for line in describe_engine(findings.provenance.get("engine", {}), source):
        text.append(f"\n{line}", style="dim")
    return text


def _print_chart(out: Console, findings: Findings) -> None:
    """One line for each layer: mean cosine with its bar and interval, and what goes with it."""
    from isotrope.findings.card import COLUMNS
    from isotrope.formats.names import is_vectors, name_layer

    by = {(r.layer, r.measure): r for r in findings.readings if (r.group, r.variant) == (None, "definition")}
    cosines = [by[layer, "mean_cosine"] for layer in findings.layers if (layer, "mean_cosine") in by]
    if not cosines:
        _print_readings(out, findings)
        return
    shown = [(m, title) for m, title, _ in COLUMNS[1:] if all((r.layer, m) in by for r in cosines)]
    columns = [Column("" if is_vectors(findings) else "layer"), Column("mean cosine"), Column("95 % interval", rank=1)]
    columns += [Column(title, right=True, rank=2 + index) for index, (_, title) in enumerate(shown)]
    rows = []
    for r in cosines:
        name = name_layer(findings, r.layer)
        cells = [format_number(by[r.layer, m].value) for m, _ in shown]
        rows.append([name, *_format_cosine(r, choose_bar_width(out)), *cells])
    first = cosines[0]
    nulls = [format_number(by[first.layer, m].null) for m, _ in shown]
    rows.append(["isotropic", f"{format_fixed(first.null):>6}", "", *nulls])
    print_table(out, columns, rows, [*(None for _ in cosines), "dim"])


def _format_cosine(r: Reading, width: int) -> tuple[str, str]:
    """A mean cosine with its bar, and its interval."""
    return f"{format_fixed(r.value):>6} {format_bar(r.value, width)}", _format_interval(r, format_fixed)


def _format_interval(r: Reading, shown: Callable[[float], str]) -> str:
    return f"{shown(r.low)} to {shown(r.high)}" if math.isfinite(r.low) else ""


def _print_groups(out: Console, findings: Findings) -> None:
    """The last layer's mean cosine in each group, where there are groups."""
    last = findings.layers[-1] if findings.layers else None
    wanted = ("mean_cosine", last, "definition")
    cosines = [r for r in findings.readings if r.group is not None and (r.measure, r.layer, r.variant) == wanted]
    if not cosines:
        return
    columns = [Column("group", wraps=24), Column("rows", right=True, rank=1), Column("mean cosine")]
    columns.append(Column("95 % interval", rank=2))
    wide = choose_bar_width(out)
    rows = [[r.group or "", f"{r.n:,}", *_format_cosine(r, wide)] for r in cosines[:_GROUPS]]
    out.print()
    print_table(out, columns, rows)
    if len(cosines) > _GROUPS:
        out.print(f"and {len(cosines) - _GROUPS} more groups, in the results", style="dim")


def _print_variants(out: Console, findings: Findings) -> None:
    """The last layer by both definitions, for the measures that were read by another one too."""
    last = findings.layers[-1] if findings.layers else None
    here = [r for r in findings.readings if r.layer == last and r.group is None]
    by = {(r.measure, r.variant): r.value for r in here}
    others = [r for r in here if r.variant != "definition"]
    if not others:
        return
    columns = [Column("measure"), Column("definition", right=True), Column(others[0].variant, right=True)]
    rows = [[r.measure, format_number(by[r.measure, "definition"]), format_number(r.value)] for r in others]
    out.print()
    print_table(out, columns, rows)


def _print_readings(out: Console, findings: Findings) -> None:
    """All readings, where there is no mean cosine to draw."""
    from isotrope.findings.reading import name_reading
    from isotrope.formats.names import is_vectors, name_layer

    columns = [
        Column("" if is_vectors(findings) else "layer"),
        Column("measure"),
        Column("value"),
        Column("95 % interval", rank=1),
    ]
    columns.append(Column("isotropic", rank=2))
    rows = []
    for r in findings.readings:
        if r.group is None:
            layer = name_layer(findings, r.layer)
            rows.append(
                [
                    layer,
                    name_reading(r.measure, r.variant),
                    format_number(r.value),
                    _format_interval(r, format_number),
                    format_number(r.null),
                ]
            )
    print_table(out, columns, rows)


def _describe_notes(findings: Findings) -> list[str]:
    """What to know about some of the values, and which; notes of several layers that differ in a number are one."""
    notes: dict[str, str] = {}
    measures: dict[str, dict[str, None]] = {}
    for r in findings.readings:
        if r.note and r.group is None:
            for note in r.note.split("; "):
                if _SETTINGS.match(note):
                    continue
                kind = re.sub(r"\d[\d,]*", "#", note)
                notes.setdefault(kind, note)
                measures.setdefault(kind, {})[r.measure] = None
    return [f"with care: {', '.join(measures[kind])}: {note}" for kind, note in notes.items()]


def _describe_undefined(findings: Findings) -> list[str]:
    """How many measures have no value, or which, and why, each reason once."""
    measures: dict[str, dict[str, None]] = {}
    for r in findings.readings:
        if r.reason and r.group is None:
            measures.setdefault(r.reason, {})[r.measure] = None
    parts = [
        f"{', '.join(names) if len(names) <= 3 else f'{len(names)} measures'} ({reason})"
        for reason, names in measures.items()
    ]
    return [f"without a value: {'; '.join(parts)}"] if parts else []


def describe_engine(engine: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[str]:
    """What happened on a cluster, a line each; nothing where this process did it all.

    >>> list(describe_engine({"name": "ray", "workers": 2, "retried_shards": 1, "skipped_shards": {}}, {}))
    ['read by 2 workers of Ray; 1 shard again, because its worker was lost']
    """
    if engine.get("name", "local") == "local":
        return
    count, again = engine["workers"], engine["retried_shards"]
    words = f"read by {count} worker{'s' * (count > 1)} of Ray"
    if again:
        words += f"; {again} shard{'s' * (again > 1)} again, because {'their' if again > 1 else 'its'} worker was lost"
    yield words
    bad = {**source.get("left_out", {}), **engine["skipped_shards"]}
    for name, reason in list(bad.items())[:_NAMED]:
        yield f"skipped {name}: {reason}"
    if len(bad) > _NAMED:
        yield f"and {len(bad) - _NAMED} more, named in findings.json"


def show_plan(plan: Plan, *, json: bool) -> None:
    """What a scan would cost."""
    if json:
        from dataclasses import asdict

        print_json(asdict(plan))
        return
    from isotrope.readings.cost import format_duration

    out = console()
    if plan.engine != "local":
        out.print(f"engine   {plan.engine}; what follows was measured in this process alone")
    layers = f" for each of {plan.layers} layers" if plan.layers > 1 else ""
    out.print(f"rows     about {plan.rows:,}{layers} of {plan.width:,} dimensions")
    out.print(f"time     about {format_duration(plan.seconds)}")
    out.print(f"memory   about {_format_bytes(plan.memory)}")
    checkpoints = f"up to {_format_bytes(plan.checkpoints)} of checkpoints while it runs"
    out.print(f"disk     about {_format_bytes(plan.disk)}, and {checkpoints}")
    out.print("Nothing was written.", style="dim")


def show_requests(estimate: RequestEstimate, *, json: bool) -> None:
    """What a scan would send to an endpoint."""
    if json:
        from dataclasses import asdict

        print_json(asdict(estimate))
        return
    out = console()
    out.print(f"endpoint {estimate.endpoint}, model {estimate.model}")
    out.print(
        f"texts    {estimate.texts:,}, of which {estimate.repeated:,} repeat another and {estimate.kept:,} are kept"
    )
    sent = f"{estimate.sent:,} texts of {estimate.characters:,} characters in all"
    out.print(f"to send  {sent}, in {estimate.requests:,} requests")
    out.print("Nothing was sent or written.", style="dim")


def _format_bytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 1):.0f} MB"
