"""Advice and evaluations: what the run folder has of them, and the commands that find out more."""

from __future__ import annotations

import csv
import json
import math
import shlex
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.findings import Findings
from isotrope.report.headline import find_level
from isotrope.runs.run import FINDINGS
from isotrope.sources import EMBEDDED

ADVICE = "advice.json"

#: Files of a run that are no results of evaluations.
_OWN = (FINDINGS, ADVICE, "readings.csv")

#: Rows of a table that a page shows at most.
_MOST = 2_000

#: Longest file that is looked into.
_LONGEST = 20_000_000

#: Why the page does not colour what a repair changes.
_NO_EVIDENCE = (
    "A repair always makes these numbers look more even. That is a change of shape and no evidence that search or "
    "similarity improve: on all-MiniLM-L6-v2, whose space is healthy, repairs cost two to five points of STS."
)


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
        return value if math.isfinite(value) else None
    return json.dumps(value)


def describe_advice(findings: Findings, folder: str, advice: Mapping[str, Any] | None) -> dict[str, Any]:
    """A title, sentences and commands for the part of a page that tries repairs.

    Args:
        findings: of the run.
        folder: what the run folder is called in commands.
        advice: what `isotrope advise` said of it, None where it was not asked.
    """
    if advice is not None:
        none = advice.get("advice") == "none"
        title = "The advice is to leave this space alone" if none else f"The advice is to repair it: {advice['advice']}"
        reasons = advice.get("reasons")
        said = [str(reason) for reason in reasons[:1]] if isinstance(reasons, list) else []
        return {"title": title, "text": [*said, _NO_EVIDENCE], "commands": [_evaluation_command(findings)]}
    if find_level(findings) == 0:
        title = "Leave this space alone unless an evaluation says otherwise"
        first = "The verdict finds nothing wrong with it, and a repair costs a healthy space points."
    else:
        title = "Whether a repair would help is not known yet"
        first = "The shape of a space does not tell whether a task gains from a repair."
    return {
        "title": title,
        "text": [first, _NO_EVIDENCE],
        "commands": [_advice_command(findings, folder), _evaluation_command(findings)],
    }


def _advice_command(findings: Findings, folder: str) -> dict[str, str]:
    """The command that gives advice, and puts it where the report looks for it."""
    source = findings.source
    if findings.model:
        corpus = source.get("corpus") or {}
        given = [*_model(findings), "--text", str(corpus.get("path") or "TEXT")]
    else:
        paths = [str(file["path"]) for file in source.get("files") or [] if isinstance(file, dict) and "path" in file]
        given = ["--vectors", paths[0] if len(paths) == 1 else "VECTORS"]
    command = f"isotrope advise {shlex.join(given)} --json > {shlex.quote(f'{folder}/advice.json')}"
    return {"what": "Ask for advice, which needs no labels:", "command": command}


def _evaluation_command(findings: Findings) -> dict[str, str]:
    """The command that measures a task with and without a repair."""
    model = shlex.join(_model(findings)) if findings.model else "--model MODEL"
    command = " ".join(part for part in ("isotrope evaluate sts", model, "--data DATA --repair softdecay") if part)
    return {"what": "Prove it on a task, or on your own documents with evaluate retrieval:", "command": command}


def _model(findings: Findings) -> list[str]:
    return [] if findings.model == EMBEDDED else ["--model", str(findings.model)]
