"""Findings as a small HTML table for notebooks, without scripts or requests."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Protocol

from isotrope.findings.reading import Reading, Verdict, name_reading
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


def _make_formatter(count: int) -> Callable[[float], str]:
    """A function that formats numbers with a number of decimals, and zero without a sign."""
    return lambda value: f"{round(value, count) + 0.0:.{count}f}"


#: Columns of a short table of layers, here and on the terminal: measure, heading and decimals.
COLUMNS = (
    ("mean_cosine", "mean cosine", 3),
    ("drift_share", "drift share", 3),
    ("isoscore", "IsoScore", 3),
    ("effective_rank_eigenvalues", "effective rank", 1),
)

#: The most layers or readings that are shown.
_MOST = 40

#: Symbols of how severe a statement is, so that colour is not needed.
_SYMBOLS = ("✓", "▲", "▲▲", "✗")

# Colours come from the notebook, so that light and dark both work.
_CELL = "text-align:right;padding:2px 10px"
_FIRST = "text-align:left;padding:2px 10px"
_FAINT = "opacity:.65"


def format_card(findings: Shown) -> str:
    """Format what was scanned, the verdict in words, and a row for each layer; all text is escaped."""
    parts = [f'<p style="margin:4px 0"><b>{_escape(_format_title(findings))}</b></p>']
    parts += [
        f'<p style="margin:4px 0">{_SYMBOLS[min(s.level, 3)]} {_escape(s.text)}</p>'
        for s in findings.verdict.statements
    ]
    parts.append(_format_table(findings))
    inside = "".join(parts)
    return f'<div class="isotrope-findings">{inside}</div>'


def _format_title(findings: Shown) -> str:
    source = findings.source
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    rows = max((r.n for r in findings.readings if r.layer is not None and r.group is None), default=0)
    return f"{findings.title}{over}: {findings.verdict.word}, {rows:,} rows"


def _format_table(findings: Shown) -> str:
    by = {(r.layer, r.measure): r for r in findings.readings if (r.group, r.variant) == (None, "definition")}
    columns = [
        (measure, heading, _make_formatter(decimals))
        for measure, heading, decimals in COLUMNS
        if any((layer, measure) in by for layer in findings.layers)
    ]
    if not columns:
        return _format_readings(findings)
    head = _format_row([(_layer_heading(findings), _FIRST), *((title, _CELL) for _, title, _ in columns)], "th")
    rows = []
    for layer in findings.layers[:_MOST]:
        cells = [(_format_value(by.get((layer, m)), format_number), _CELL) for m, _, format_number in columns]
        rows.append(_format_row([(name_layer(findings, layer), _FIRST), *cells]))
    if len(findings.layers) > _MOST:
        rows.append(_format_row([(f"and {len(findings.layers) - _MOST} more layers", f"{_FIRST};{_FAINT}")]))
    nulls = [
        (_format_null(by.get((findings.layers[0], m)), format_number), f"{_CELL};{_FAINT}")
        for m, _, format_number in columns
    ]
    rows.append(_format_row([("isotropic", f"{_FIRST};{_FAINT}"), *nulls]))
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _format_readings(findings: Shown) -> str:
    """Format all readings, if none of the usual columns is there."""
    head = _format_row([(_layer_heading(findings), _FIRST), ("measure", _FIRST), ("value", _CELL)], "th")
    shown = [r for r in findings.readings if r.group is None]
    rows = []
    for r in shown[:_MOST]:
        layer = name_layer(findings, r.layer)
        rows.append(
            _format_row(
                [
                    (layer, _FIRST),
                    (name_reading(r.measure, r.variant), _FIRST),
                    (_format_value(r, "{:.4g}".format), _CELL),
                ]
            )
        )
    if len(shown) > _MOST:
        rows.append(_format_row([(f"and {len(shown) - _MOST} more", f"{_FIRST};{_FAINT}")]))
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _layer_heading(findings: Shown) -> str:
    return "" if is_vectors(findings) else "layer"


def _format_row(cells: list[tuple[str, str]], tag: str = "td") -> str:
    filled = "".join(f'<{tag} style="{look}">{_escape(text)}</{tag}>' for text, look in cells)
    return f"<tr>{filled}</tr>"


def _format_value(r: Reading | None, format_number: Callable[[float], str]) -> str:
    """Format a value and its interval, or a dash where there is none."""
    if r is None or not math.isfinite(r.value):
        return "–"
    ends = (
        f" ({format_number(r.low)} to {format_number(r.high)})"
        if math.isfinite(r.low) and math.isfinite(r.high)
        else ""
    )
    return f"{format_number(r.value)}{ends}"


def _format_null(r: Reading | None, format_number: Callable[[float], str]) -> str:
    return format_number(r.null) if r is not None and math.isfinite(r.null) else "–"
