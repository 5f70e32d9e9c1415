"""Findings as a small table in HTML: all that a notebook shows of them, with no script and no request."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Protocol

from isotrope.findings.reading import Reading, Verdict
from isotrope.formats.names import Scanned, is_vectors, name_layer
from isotrope.formats.printable import escape_controls


class Shown(Scanned, Protocol):
    """What a card shows of findings."""

    readings: list[Reading]
    verdict: Verdict

    @property
    def title(self) -> str: ...


def _escape(text: str) -> str:
    """Text that is neither markup nor a control character to a browser."""
    return escape(escape_controls(text))


def _decimals(count: int) -> Callable[[float], str]:
    """Writes numbers with so many decimals, zero without a sign."""
    return lambda value: f"{round(value, count) + 0.0:.{count}f}"


#: Columns of the table: measure, heading, and how its numbers are written.
_COLUMNS = (
    ("mean_cosine", "mean cosine", _decimals(3)),
    ("drift_share", "drift share", _decimals(3)),
    ("isoscore", "IsoScore", _decimals(3)),
    ("effective_rank_eigenvalues", "effective rank", _decimals(1)),
)

#: Layers and readings that are shown at most.
_MOST = 40

#: Marks of how bad a sentence is, which do not hang on colour alone.
_MARKS = ("✓", "▲", "▲▲", "✗")

# Colours come from the notebook, so that light and dark both work.
_CELL = "text-align:right;padding:2px 10px"
_FIRST = "text-align:left;padding:2px 10px"
_FAINT = "opacity:.65"


def format_card(findings: Shown) -> str:
    """What was scanned, the verdict in words, and a line for each layer; every text escaped."""
    parts = [f'<p style="margin:4px 0"><b>{_escape(_title(findings))}</b></p>']
    parts += [
        f'<p style="margin:4px 0">{_MARKS[min(s.level, 3)]} {_escape(s.text)}</p>' for s in findings.verdict.statements
    ]
    parts.append(_table(findings))
    inside = "".join(parts)
    return f'<div class="isotrope-findings">{inside}</div>'


def _title(findings: Shown) -> str:
    source = findings.source
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    rows = max((r.n for r in findings.readings if r.layer is not None and r.group is None), default=0)
    return f"{findings.title}{over}: {findings.verdict.word}, {rows:,} rows"


def _table(findings: Shown) -> str:
    by = {(r.layer, r.measure): r for r in findings.readings if (r.group, r.variant) == (None, "definition")}
    columns = [column for column in _COLUMNS if any((layer, column[0]) in by for layer in findings.layers)]
    if not columns:
        return _plain(findings)
    head = _row([(_head(findings), _FIRST), *((title, _CELL) for _, title, _ in columns)], "th")
    rows = []
    for layer in findings.layers[:_MOST]:
        cells = [(_number(by.get((layer, m)), written), _CELL) for m, _, written in columns]
        rows.append(_row([(name_layer(findings, layer), _FIRST), *cells]))
    if len(findings.layers) > _MOST:
        rows.append(_row([(f"and {len(findings.layers) - _MOST} more layers", f"{_FIRST};{_FAINT}")]))
    nulls = [(_null(by.get((findings.layers[0], m)), written), f"{_CELL};{_FAINT}") for m, _, written in columns]
    rows.append(_row([("isotropic", f"{_FIRST};{_FAINT}"), *nulls]))
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _plain(findings: Shown) -> str:
    """All readings, where none of the usual ones is there."""
    head = _row([(_head(findings), _FIRST), ("measure", _FIRST), ("value", _CELL)], "th")
    shown = [r for r in findings.readings if r.group is None]
    rows = []
    for r in shown[:_MOST]:
        layer = name_layer(findings, r.layer)
        rows.append(_row([(layer, _FIRST), (r.measure, _FIRST), (_number(r, "{:.4g}".format), _CELL)]))
    if len(shown) > _MOST:
        rows.append(_row([(f"and {len(shown) - _MOST} more", f"{_FIRST};{_FAINT}")]))
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _head(findings: Shown) -> str:
    return "" if is_vectors(findings) else "layer"


def _row(cells: list[tuple[str, str]], tag: str = "td") -> str:
    filled = "".join(f'<{tag} style="{look}">{_escape(text)}</{tag}>' for text, look in cells)
    return f"<tr>{filled}</tr>"


def _number(r: Reading | None, written: Callable[[float], str]) -> str:
    """A value and its interval, a dash where there is none."""
    if r is None or not math.isfinite(r.value):
        return "–"
    ends = f" ({written(r.low)} to {written(r.high)})" if math.isfinite(r.low) and math.isfinite(r.high) else ""
    return f"{written(r.value)}{ends}"


def _null(r: Reading | None, written: Callable[[float], str]) -> str:
    return written(r.null) if r is not None and math.isfinite(r.null) else "–"
