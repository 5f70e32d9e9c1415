"""One or several studies as an HTML page: claims with contradictions first, then all figures and tables."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.formats.json import to_plain
from isotrope.report.html import make_policy, read_style_sheet, render
from isotrope.storage.files import resolve_inside
from isotrope.studies.result import Claim, FigureEntry, Part, Study, Table
from isotrope.studies.verdict import OUTCOMES, Outcome

if TYPE_CHECKING:
    import pandas as pd

#: Rows of a long table that the page shows, and the most that it shows of a short one; the files hold all.
_FIRST, _WHOLE = 10, 60

#: A figure wider than this, in points, is one of several panels and has a line of its own.
_WIDE = 300

_MEANINGS: dict[Outcome, str] = {
    "contradicts": "Results that contradict the paper",
    "misprint": "Misprints: numbers that the paper's own data contradict",
    "agrees": "Results that agree with the paper",
    "undecided": "Results that decide nothing: the interval or the corrected p-value allows both",
    "note": "Notes",
}


def format_page(studies: Sequence[Study], folder: Path) -> str:
    """Format studies as one HTML page.

    Args:
        studies: one study, or several, each in a folder of its name below `folder`.
        folder: the folder that the page will be written to.
    """
    from markupsafe import Markup

    from isotrope.version import __version__

    style = read_style_sheet() + _read_resource("study.css")
    return render(
        _read_resource("study.html"),
        title=f"isotrope: {', '.join(study.name for study in studies)}",
        policy=make_policy(style),
        style=Markup(style),  # nosec B704  # a file of this package
        version=__version__,
        studies=[_describe_study(study, folder, f"{study.name}/" if len(studies) > 1 else "") for study in studies],
    )


def _describe_study(study: Study, folder: Path, below: str) -> dict[str, Any]:
    anchors = {part.name: f"{study.name}-{number}" for number, part in enumerate(study.parts)}
    claims = {
        outcome: [
            _describe_claim(part, claim, anchors[part])
            for part, claim in study.ranked_claims
            if claim.outcome == outcome
        ]
        for outcome in OUTCOMES
    }
    counts = [_format_count(outcome, len(found)) for outcome, found in claims.items() if found]
    return {
        "anchor": study.name,
        "title": study.name.replace("-", " ").capitalize(),
        "paper": study.paper,
        "summary": f"{', '.join(counts)}." if counts else "",
        "outcomes": [(outcome, _MEANINGS[outcome], found) for outcome, found in claims.items() if found],
        "parts": [
            _describe_part(part, folder, below, anchors[part.name])
            for part in study.parts
            if part.tables or part.figures
        ],
    }


def _describe_claim(part: str, claim: Claim, anchor: str) -> dict[str, Any]:
    return {
        "text": _format_minus(_capitalise(claim.text)),
        "where": claim.where,
        "part": part,
        "anchor": anchor,
        "of": ", ".join(word for word in (claim.model, claim.model_class) if word and word not in claim.text),
        "ours": _format_cell(claim.ours)[0],
        "published": _format_cell(claim.published)[0],
        "evidence": _format_minus(claim.evidence),
    }


def _format_count(outcome: Outcome, count: int) -> str:
    if outcome == "undecided":
        return f"{count} not decided"
    words = {"contradicts": "contradiction", "misprint": "misprint", "agrees": "agreement", "note": "note"}
    return f"{count} {words[outcome]}{'s' if count > 1 else ''}"


def _describe_part(part: Part, folder: Path, below: str, anchor: str) -> dict[str, Any]:
    files = below + part.folder
    return {
        "anchor": anchor,
        "name": _capitalise(part.name),
        "figures": [_describe_figure(figure, folder, files) for figure in part.figures],
        "tables": [_describe_table(table, files) for table in part.tables if table.shown],
        "files": [{"title": t.title, "file": f"{files}/{t.name}"} for t in part.tables if not t.shown],
    }


def _describe_figure(figure: FigureEntry, folder: Path, files: str) -> dict[str, Any]:
    if figure.reason is not None:
        return {"name": figure.name, "reason": figure.reason}
    picture = resolve_inside(folder / files, f"{figure.name}.svg").read_bytes()
    image = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"
    points = re.search(rb'width="([\d.]+)pt"', picture)
    wide = points is not None and float(points[1]) > _WIDE
    return {"title": figure.title, "reason": None, "image": image, "file": f"{files}/{figure.name}", "wide": wide}


def _describe_table(table: Table, files: str) -> dict[str, Any]:
    n, frame = len(table.frame), _order_columns(table.frame)
    shown = _join_intervals(_format_cells(frame if n <= _WHOLE else frame.head(_FIRST)))
    return {
        "title": table.title,
        "columns": [(name.replace("_", " "), all(number for _, number in column)) for name, column in shown.items()],
        "rows": list(zip(*shown.values(), strict=True)),
        "rest": f"The first {min(n, _FIRST)} of {n:,} rows; all as " if n > _WHOLE else "As ",
        "file": f"{files}/{table.name}",
    }


def _format_cells(frame: pd.DataFrame) -> dict[str, list[tuple[str, bool]]]:
    """The cells of each column, without columns that are empty: the paper prints numbers of few models."""
    cells = {str(name): [_format_cell(value) for value in frame[name]] for name in frame}
    return {name: column for name, column in cells.items() if not column or any(text != "–" for text, _ in column)}


def _join_intervals(cells: dict[str, list[tuple[str, bool]]]) -> dict[str, list[tuple[str, bool]]]:
    """Write the ends of an interval behind its value, so that wide tables fit on the page.

    >>> cells = {"cv": [("0.3", True)], "cv_low": [("0.2", True)], "cv_high": [("0.4", True)]}
    >>> _join_intervals(cells)
    {'cv': [('0.3 (0.2 to 0.4)', True)]}
    """
    joined = dict(cells)
    for name in cells:
        for gap, stem in product("_ ", (name, name.removesuffix("_slope"))):
            ends = [f"{stem}{gap}{end}" for end in ("low", "high")]
            if joined.keys() >= set(ends):
                low, high = (joined.pop(end) for end in ends)
                rows = zip(joined[name], low, high, strict=True)
                joined[name] = [
                    (text if a == "–" else f"{text} ({a} to {b})", number) for (text, number), (a, _), (b, _) in rows
                ]
    return joined


def _order_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns in the order of the page: what a row is about, the first number, what the paper prints, the rest.

    >>> import pandas as pd
    >>> list(_order_columns(pd.DataFrame([[1.0, 0.5, "raw", 2.0]], columns=["ours", "low", "repair", "printed"])))
    ['repair', 'ours', 'printed', 'low']
    """
    texts = [name for name in frame if not _is_numeric(frame[name])]
    printed = [name for name in frame if str(name).startswith(("printed", "published")) and name not in texts]
    numbers = [name for name in frame if name not in (*texts, *printed)]
    ordered: pd.DataFrame = frame[[*texts, *numbers[:1], *printed, *numbers[1:]]]
    return ordered


def _is_numeric(column: pd.Series[Any]) -> bool:
    return all(_format_cell(value)[1] for value in column)


def _format_cell(value: Any) -> tuple[str, bool]:
    """Format a value with four digits, and say whether it is a number.

    >>> [_format_cell(value) for value in (0.123456, 12345.6, float("nan"), "raw", -0.5)]
    [('0.1235', True), ('12,346', True), ('–', True), ('raw', False), ('−0.5', True)]
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


def _capitalise(text: str) -> str:
    """Start a sentence with a capital, unless its first word is a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _format_minus(text: str) -> str:
    """Write the minus of numbers as the cells of tables do.

    >>> _format_minus("bert-2 has -0.42 to -0.39, or 1e-6")
    'bert-2 has −0.42 to −0.39, or 1e-6'
    """
    return re.sub(r"(?<![\w.-])-(?=\d)", "−", text)


@cache
def _read_resource(name: str) -> str:
    return (resources.files("isotrope.studies") / "page" / name).read_text("utf-8")
