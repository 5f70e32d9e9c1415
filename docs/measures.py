"""Makes one page per measure from its record, with a picture from a real run: python docs/measures.py RUN

RUN: the folder of `isotrope scan --measures all`, the embedded model over the Python manual.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from isotrope.cli.catalogue import describe_measure
from isotrope.findings import Findings, Reading
from isotrope.measures import MEASURES, Measure
from isotrope.runs.run import Run

PAGES = Path(__file__).parent / "measures"
PICTURES = Path(__file__).parent / "images" / "measures"

#: The command that gives a measure of documents, by what it needs besides them; there is no picture of it.
COMMANDS = {
    "queries": "isotrope scan documents.npy --queries queries.npy",
    "texts": "isotrope scan documents.parquet --text-column text",
}

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 260, 70, 20, 34, 40


def page(m: Measure) -> str:
    """The page of one measure, in Markdown."""
    facts = describe_measure(m)
    rows = [
        ("formula", facts["formula"]),
        ("range", facts["range"]),
        ("better", facts["better"] or "neither way"),
        ("unchanged by", ", ".join(facts["invariant"]) or "nothing"),
        ("interval", facts["interval_words"]),
        ("variants", ", ".join(facts["variants"])),
        ("needs", facts["needs"]),
        ("group", facts["group"] or "none: it compares two spaces"),
        ("paper", facts["paper"]),
    ]
    lines = [f"# {m.title}", "", f"`{m.name}`", "", m.says, "", "| | |", "|---|---|"]
    lines += [f"| {label} | {_cell(value)} |" for label, value in rows]
    lines += ["", f"**Blind to.** {m.blind}"]
    if m.wrong:
        lines += ["", f"**Known wrong implementations.** {m.wrong}"]
    if m.group is None:
        lines += ["", f"From Python: `isotrope.measures.{m.name}(X, Z)`, Z the image of the rows X under a repair."]
    elif m.needs in COMMANDS:
        lines += ["", f"`{COMMANDS[m.needs]}`; from Python, `isotrope.scan` takes the same arguments."]
    else:
        of = "across the layers" if m.needs == "layers" else "in each layer"
        lines += ["", f"![{m.title} {of} of all-MiniLM-L6-v2](../images/measures/{m.name}.svg)", ""]
        lines += [f"`isotrope scan --measures {m.name}`: {of} of the embedded all-MiniLM-L6-v2 over the Python manual."]
    return "\n".join(lines) + "\n"


def index() -> str:
    """The list of all pages, by group."""
    lines = ["# Measures", "", "One page each, made from the same records as `isotrope catalogue`.", ""]
    for group in dict.fromkeys(m.group for m in MEASURES):
        lines += [f"## {group or 'between two spaces'}", ""]
        lines += [f"- [`{m.name}`]({m.name}.md): {m.says}" for m in MEASURES if m.group == group]
        lines += [""]
    return "\n".join(lines)


def picture(m: Measure, findings: Findings) -> str:
    """A small chart as SVG: the values over layers with intervals and what an isotropic space would give."""
    readings = [r for r in findings.readings if r.measure == m.name and r.group is None]
    known = [r for r in readings if math.isfinite(r.value)]
    body = _curve(known, m.estimate) if len(known) > 1 else _number(known[0] if known else readings[0])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">\n<title>{_escaped(m.title)}</title>\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#fbfaf7"/>\n'
        f'<text x="{_LEFT}" y="22" font-weight="600" fill="#222">{_escaped(m.title)}</text>\n{body}\n</svg>\n'
    )


def _curve(readings: list[Reading], estimate: bool) -> str:
    known = [v for r in readings for v in (r.value, r.low, r.high, r.null) if v is not None and math.isfinite(v)]
    low, high = min(known), max(known)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin

    def x(i: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * i / (len(readings) - 1)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    parts = []
    for value in (low + margin, (low + high) / 2, high - margin):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e4e0d8"/>'
        )
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#666">{value:.3g}</text>')
    for i, r in enumerate(readings):
        parts.append(f'<text x="{x(i):.1f}" y="{_HEIGHT - 18}" text-anchor="middle" fill="#666">{r.layer}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle" fill="#666" font-size="11">layer</text>')
    nulls = " ".join(f"{x(i):.1f},{y(r.null):.1f}" for i, r in enumerate(readings) if _finite(r.null))
    if nulls:
        parts.append(
            f'<polyline points="{nulls}" fill="none" stroke="#9a9a9a" stroke-width="1.5" stroke-dasharray="5 4"/>'
        )
        parts.append(
            f'<text x="{_WIDTH - _RIGHT}" y="22" text-anchor="end" fill="#777" font-size="11">dashed: isotropic</text>'
        )
    for i, r in enumerate(readings):
        if estimate and _finite(r.low) and _finite(r.high):
            ends = f'x1="{x(i):.1f}" x2="{x(i):.1f}" y1="{y(r.low):.1f}" y2="{y(r.high):.1f}"'
            parts.append(f'<line {ends} stroke="#c8553d" stroke-opacity="0.45" stroke-width="6"/>')
    points = " ".join(f"{x(i):.1f},{y(r.value):.1f}" for i, r in enumerate(readings))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#c8553d" stroke-width="2"/>')
    parts += [f'<circle cx="{x(i):.1f}" cy="{y(r.value):.1f}" r="3.5" fill="#c8553d"/>' for i, r in enumerate(readings)]
    return "\n".join(parts)


def _number(r: Reading) -> str:
    words = f"{r.value:.3g}" if math.isfinite(r.value) else str(r.reason)
    size = 48 if math.isfinite(r.value) else 16
    place = f'x="{_WIDTH / 2}" y="{_HEIGHT / 2 + 16}" text-anchor="middle"'
    return f'<text {place} font-size="{size}" fill="#c8553d">{_escaped(words)}</text>'


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def main(run: str) -> None:
    findings = Run(run).findings()
    for folder in (PAGES, PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
    (PAGES / "README.md").write_text(index(), encoding="utf-8")
    for m in MEASURES:
        (PAGES / f"{m.name}.md").write_text(page(m), encoding="utf-8")
        if m.group is not None and m.needs not in COMMANDS:
            (PICTURES / f"{m.name}.svg").write_text(picture(m, findings), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
