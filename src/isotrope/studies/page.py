"""A study, or several, as one HTML file: what came out, contradictions first, then every figure and table."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from isotrope.formats.json import to_plain
from isotrope.report.html import policy, rendered, style_sheet
from isotrope.runs.run import inside
from isotrope.studies.result import OUTCOMES, Drawn, Outcome, Part, Study, Table

#: Rows of a long table that the page shows, and the most that it shows of a short one; the files hold all.
_FIRST, _WHOLE = 10, 60

#: A figure wider than this, in points, is one of several panels and has a line of its own.
_WIDE = 300

_MEANINGS: dict[Outcome, str] = {
    "contradicts": "What came out otherwise than the paper says",
    "misprint": "What the paper prints and its own data contradict",
    "agrees": "What came out as the paper says",
    "note": "To know beside it",
}


def page(studies: Sequence[Study], folder: Path) -> str:
    """The whole page. folder: where it will stand; several studies have folders of their own below it."""
    from markupsafe import Markup

    from isotrope import __version__

    style = style_sheet() + _file("study.css")
    return rendered(
        _file("study.html"),
        title=f"isotrope: {', '.join(study.name for study in studies)}",
        policy=policy(style),
        style=Markup(style),  # nosec B704  # a file of this package
        version=__version__,
        studies=[_study(study, folder, f"{study.name}/" if len(studies) > 1 else "") for study in studies],
    )


def _study(study: Study, folder: Path, below: str) -> dict[str, Any]:
    told = {
        outcome: [
            {"text": _sentence(claim.text), "where": f"({part}{f', {claim.where}' if claim.where else ''})"}
            for part, claim in study.told
            if claim.outcome == outcome
        ]
        for outcome in OUTCOMES
    }
    counts = [f"{len(claims)} {_counted(outcome, len(claims))}" for outcome, claims in told.items() if claims]
    return {
        "anchor": study.name,
        "title": study.name.replace("-", " ").capitalize(),
        "paper": study.paper,
        "summary": f"{', '.join(counts)}." if counts else "",
        "outcomes": [(outcome, _MEANINGS[outcome], claims) for outcome, claims in told.items() if claims],
        "parts": [
            _part(part, folder, below, f"{study.name}-{number}")
            for number, part in enumerate(study.parts)
            if part.tables or part.figures
        ],
    }


def _counted(outcome: Outcome, count: int) -> str:
    words = {"contradicts": "contradiction", "misprint": "misprint", "agrees": "agreement", "note": "note"}
    return words[outcome] + ("s" if count > 1 else "")


def _part(part: Part, folder: Path, below: str, anchor: str) -> dict[str, Any]:
    place = below + part.folder
    return {
        "anchor": anchor,
        "name": _sentence(part.name),
        "figures": [_figure(drawn, folder, place) for drawn in part.figures],
        "tables": [_table(table, place) for table in part.tables],
    }


def _figure(drawn: Drawn, folder: Path, place: str) -> dict[str, Any]:
    if drawn.reason is not None:
        return {"name": drawn.name, "reason": drawn.reason}
    picture = inside(folder / place, f"{drawn.name}.svg").read_bytes()
    image = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"
    points = re.search(rb'width="([\d.]+)pt"', picture)
    wide = points is not None and float(points[1]) > _WIDE
    return {"title": drawn.title, "reason": None, "image": image, "file": f"{place}/{drawn.name}", "wide": wide}


def _table(table: Table, place: str) -> dict[str, Any]:
    n = len(table.frame)
    shown = table.frame if n <= _WHOLE else table.frame.head(_FIRST)
    rows = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
    numbers = [all(number for _, number in column) for column in zip(*rows, strict=True)] or [False] * shown.shape[1]
    return {
        "title": table.title,
        "columns": [(str(name).replace("_", " "), number) for name, number in zip(shown.columns, numbers, strict=True)],
        "rows": rows,
        "rest": f"The first {len(shown)} of {n:,} rows; all as " if n > len(shown) else "As ",
        "file": f"{place}/{table.name}",
    }


def _cell(value: Any) -> tuple[str, bool]:
    """A value for people, four digits of a number, and whether it is one.

    >>> _cell(0.123456), _cell(12345.6), _cell(float("nan")), _cell("raw"), _cell(-0.5)
    (('0.1235', True), ('12,346', True), ('–', True), ('raw', False), ('−0.5', True))
    """
    value = to_plain(value)
    if value is None:
        return "–", True
    if isinstance(value, bool):
        return ("yes" if value else "no"), False
    if isinstance(value, int):
        return f"{value:,}", True
    if isinstance(value, float):
        text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
        return text.replace("-", "−"), True
    return str(value), False


def _sentence(text: str) -> str:
    """With a capital, where it begins with a plain word and not with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


@cache
def _file(name: str) -> str:
    return (resources.files("isotrope.studies") / "page" / name).read_text("utf-8")
