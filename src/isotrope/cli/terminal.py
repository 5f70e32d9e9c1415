"""What people see in the terminal: a progress bar, the verdict, a small chart of the layers."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from isotrope.findings import Findings, Reading
    from isotrope.planning import Plan

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 24
_STYLES = {0: "green", 1: "yellow", 2: "dark_orange", 3: "red"}

#: Columns of the chart of layers beside the bar: measure and heading.
_COLUMNS = (
    ("drift_share", "drift share"),
    ("isoscore", "IsoScore"),
    ("effective_rank_eigenvalues", "effective rank"),
)


def console(*, stderr: bool = False) -> Console:
    """Standard output, as wide as it needs to be when piped."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else 200, highlight=False)


class Bar:
    """A progress bar on standard error, only where that is a terminal; call it with what, done and total."""

    def __init__(self, *, quiet: bool) -> None:
        shown = sys.stderr.isatty() and not quiet
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeRemainingColumn(),
            console=console(stderr=True),
            transient=True,
            disable=not shown,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, visible=False)
            self._tasks[what] = self._progress.add_task(what, total=total, count="")
        count = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        self._progress.update(self._tasks[what], completed=done, total=total, count=count)


def number(value: float, *, sign: bool = False) -> str:
    """A number in few digits, a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    shown = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"+{shown}" if sign and value > 0 else shown


def bar(value: float, width: int = _BAR) -> str:
    """A value between 0 and 1 as a bar of block characters.

    >>> bar(0.5, 4)
    '██'
    """
    if not math.isfinite(value):
        return ""
    eighths = round(min(1.0, max(0.0, value)) * width * 8)
    return _BLOCKS[8] * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def show_findings(findings: Findings, folder: Path | None) -> None:
    """The verdict in words, the chart of layers, and where the results are."""
    out = console()
    out.print(_headline(findings))
    for statement in findings.verdict.statements:
        mark = "●" if statement.sure else "○"
        out.print(Text(f"{mark} {statement.text}", style=_STYLES[statement.level]), soft_wrap=True)
    out.print()
    _chart(out, findings)
    _undefined(out, findings)
    if folder is not None:
        out.print(f"\nResults: {folder}/ (findings.json, readings.csv, readings.parquet, tables/, statistics/)")


def _headline(findings: Findings) -> Text:
    source, counts = findings.source, findings.counts
    rows = max((r.n for r in findings.readings if r.measure == "mean_cosine"), default=0)
    what = source.get("model") or "vectors"
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    size = f"{rows:,} rows" + (f" of {counts['texts']:,} texts" if "texts" in counts and not source.get("pooling") else "")
    width = f"{len(findings.layers)} layers of {source.get('width')}" if len(findings.layers) > 1 else f"width {source.get('width')}"
    text = Text()
    text.append(f"{what}{over}", style="bold")
    text.append(f"  {size}, {width}", style="dim")
    return text


def _chart(out: Console, findings: Findings) -> None:
    """One line for each layer: mean cosine with its bar and interval, and what goes with it."""
    by = {(r.layer, r.measure): r for r in findings.readings if r.group is None}
    cosines = [by[layer, "mean_cosine"] for layer in findings.layers if (layer, "mean_cosine") in by]
    if not cosines:
        _plain(out, findings)
        return
    shown = [(m, title) for m, title in _COLUMNS if any((layer, m) in by for layer in findings.layers)]
    table = Table(box=None, pad_edge=False)
    table.add_column("layer")
    table.add_column("mean cosine", no_wrap=True)
    table.add_column("95 % interval", justify="right")
    for _, title in shown:
        table.add_column(title, justify="right")
    for r in cosines:
        cells = [by[r.layer, m] for m, _ in shown if (r.layer, m) in by]
        name = findings.layer_names.get(str(r.layer), str(r.layer))
        table.add_row(
            name, f"{number(r.value):>8} {bar(r.value)}", _interval(r), *(number(c.value) for c in cells)
        )
    out.print(table)
    nulls = [f"mean cosine {number(cosines[0].null)}"]
    nulls += [f"{title} {number(by[cosines[0].layer, m].null)}" for m, title in shown if (cosines[0].layer, m) in by]
    out.print(f"isotropic rows would give: {', '.join(nulls)}", style="dim")


def _interval(r: Reading) -> str:
    return f"{number(r.low)} to {number(r.high)}" if math.isfinite(r.low) else ""


def _plain(out: Console, findings: Findings) -> None:
    """All readings, where there is no mean cosine to draw."""
    table = Table(box=None, pad_edge=False)
    for column in ("layer", "measure", "value", "95 % interval", "isotropic"):
        table.add_column(column)
    for r in findings.readings:
        if r.group is None:
            layer = "" if r.layer is None else str(r.layer)
            table.add_row(layer, r.measure, number(r.value), _interval(r), number(r.null))
    out.print(table)


def _undefined(out: Console, findings: Findings) -> None:
    """Which measures have no value, and why, each reason once."""
    reasons: dict[str, set[str]] = {}
    for r in findings.readings:
        if r.reason:
            reasons.setdefault(r.reason, set()).add(r.measure)
    for reason, names in reasons.items():
        some = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        out.print(f"without a value: {some}: {reason}", style="dim", soft_wrap=True)


def show_plan(plan: Plan, *, json: bool) -> None:
    """What a scan would cost."""
    if json:
        import json as library
        from dataclasses import asdict

        print(library.dumps(asdict(plan)))
        return
    out = console()
    out.print(f"rows     about {plan.rows:,} for each of {plan.layers} layers of {plan.width:,} dimensions")
    out.print(f"time     about {_duration(plan.seconds)}")
    out.print(f"memory   about {_bytes(plan.memory)}")
    out.print(f"disk     about {_bytes(plan.disk)}")
    out.print("Nothing was written.", style="dim")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _bytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"
