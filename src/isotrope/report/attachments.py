"""What else lies in a run folder: advice and evaluations, as plain tables."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.runs.run import FINDINGS

ADVICE = "advice.json"

#: Files that every run has.
_OWN = (FINDINGS, ADVICE, "readings.csv")

#: Rows of a table that a page shows at most.
_MOST = 2_000

#: Longest file that is looked into.
_LONGEST = 20_000_000


def read_attachments(folder: Path) -> dict[str, Any]:
    """Advice, evaluations by file, and sentences on what could not be read."""
    notes: list[str] = []
    found: dict[str, Any] = {"advice": None, "evaluations": [], "notes": notes}
    if (folder / ADVICE).is_file():
        advice = _json(folder / ADVICE, notes)
        found["advice"] = advice if isinstance(advice, dict) and "advice" in advice else None
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.csv")]):
        if path.name not in _OWN and path.is_file() and path.stat().st_size <= _LONGEST:
            tables = _evaluation(_json(path, notes)) if path.suffix == ".json" else _scores(_rows(path, notes))
            if tables:
                found["evaluations"].append({"file": path.name, "tables": tables})
    return found


def _json(path: Path, notes: list[str]) -> Any:
    try:
        found = json.loads(path.read_bytes())
        json.dumps(found, allow_nan=False)  # JSON itself knows no infinity, Python's reader does
        return found
    except (OSError, ValueError, RecursionError):
        notes.append(f"{path.name} lies in the run folder, and could not be read as JSON.")
        return None


def _rows(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [{k: _number(v) for k, v in row.items() if k} for row in islice(csv.DictReader(file), _MOST)]
    except (OSError, ValueError, csv.Error):
        notes.append(f"{path.name} lies in the run folder, and could not be read as CSV.")
        return []


def _number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def _evaluation(document: Any) -> list[dict[str, Any]]:
    """The scores and differences of an evaluation's document; nothing where it is another one."""
    if not isinstance(document, dict) or not isinstance(document.get("scores"), list):
        return []
    kinds = [("Scores", document["scores"]), ("What repairs change", document.get("differences") or [])]
    return [table for title, rows in kinds for table in _table(title, rows)]


def _scores(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The scores of an evaluation's CSV; nothing where it is another one."""
    return _table("Scores", rows) if rows and {"set", "repair"} <= rows[0].keys() else []


def _table(title: str, rows: Any) -> list[dict[str, Any]]:
    """Rows as columns and cells; columns that are empty throughout are left out."""
    lines = [row for row in rows if isinstance(row, dict)][:_MOST] if isinstance(rows, list) else []
    names = list(dict.fromkeys(str(name) for row in lines for name in row))
    columns = [name for name in names if any(row.get(name) not in (None, "") for row in lines)]
    if not columns:
        return []
    return [{"title": title, "columns": columns, "rows": [[_cell(row.get(name)) for name in columns] for row in lines]}]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # neither NaN nor infinite
    return json.dumps(value)
