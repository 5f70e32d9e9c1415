"""A run as the plain data of its page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, StoreError
from isotrope.findings import Findings, Reading
from isotrope.formats.json import to_plain
from isotrope.measures import MEASURES, get
from isotrope.report.advice import describe_advice, read_attachments
from isotrope.report.figure_data import pack_figures, pack_tokens
from isotrope.report.headline import find_level, list_facts, list_numbers, strip_word
from isotrope.report.row_data import pack_rows
from isotrope.verdict.thresholds import THRESHOLDS
from isotrope.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Groups whose readings a page shows.
_MOST_GROUPS = 200


def describe_run(findings: Findings, name: str, folder: Path | None = None) -> dict[str, Any]:
    """Describe all that the page of one run shows.

    Args:
        findings: What the run found.
        name: What the run is called on the page.
        folder: Where advice and evaluations may lie.
    """
    found = read_attachments(folder) if folder is not None else {"advice": None, "evaluations": [], "notes": []}
    verdict = findings.verdict
    return {
        "name": name,
        "model": findings.title if findings.model else None,
        "facts": list_facts(findings),
        "verdict": {
            "word": verdict.word,
            "level": find_level(findings),
            "statements": [
                {"text": strip_word(s.text, verdict.word), "level": s.level, "sure": s.sure} for s in verdict.statements
            ],
        },
        "numbers": list_numbers(findings),
        "layers": [{"label": str(x), "name": findings.layer_names.get(str(x), str(x))} for x in findings.layers],
        "width": findings.source.get("width"),
        "readings": _readings(findings),
        "across": [_plain(r) for r in findings.readings if r.layer is None and r.group is None],
        "groups": _groups(findings),
        "repairing": describe_advice(findings, name if folder is None else str(folder), found["advice"]),
        **_from_tables(findings),
        "counts": findings.counts,
        "source": findings.source,
        "provenance": findings.provenance,
        **found,
    }


def _from_tables(findings: Findings) -> dict[str, Any]:
    """What is drawn from the tables of a run."""
    try:
        return {**pack_figures(findings), **pack_rows(findings), "tokens": pack_tokens(findings)}
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:  # columns that are not as written
        raise StoreError(f"the tables of the run are damaged ({error!r}); run the scan again.") from error


def describe_page(kind: str, runs: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Describe a page about one run or several, with what the measures mean."""
    names = dict.fromkeys(name for run in runs for name in [*run["readings"], *(r["measure"] for r in run["across"])])
    names |= dict.fromkeys(line["measure"] for run in runs for line in run["tried"] if line["measure"])
    return {
        "kind": kind,
        "version": __version__,
        "measures": {name: describe_measure(name) for name in names},
        "thresholds": [{**t._asdict(), "bound": t.bound} for t in THRESHOLDS],
        "runs": list(runs),
        **more,
    }


def describe_measure(name: str) -> dict[str, Any]:
    """Describe a measure; little is said of one that this isotrope does not know."""
    try:
        m = get(name)
    except InputError:
        return {"title": name, "says": "", "group": "other", "better": None, "degree": 0}
    words = {"formula": m.formula, "paper": m.paper, "blind": m.blind}
    known = {"group": m.group or "other", "better": m.better, "degree": m.degree}
    return {"title": m.title, "says": m.says, **known, **words}


_COLUMNS = ("value", "low", "high", "null")


def _readings(findings: Findings) -> dict[str, dict[str, list[Any]]]:
    """By measure, the readings of all layers as columns."""
    order = {layer: i for i, layer in enumerate(findings.layers)}
    made: dict[str, dict[str, list[Any]]] = {}
    for r in findings.readings:
        if r.group is None and r.layer in order and r.variant == "definition":
            columns = made.setdefault(r.measure, _empty(len(order)))
            for name, value in _plain(r).items():
                if name in columns:
                    columns[name][order[r.layer]] = value
    return made


def _empty(layers: int) -> dict[str, list[Any]]:
    return {name: [None] * layers for name in (*_COLUMNS, "n", "note", "reason")}


def _plain(r: Reading) -> dict[str, Any]:
    numbers = {name: to_plain(getattr(r, name)) for name in _COLUMNS}
    return {"measure": r.measure, **numbers, "n": r.n, "note": r.note, "reason": r.reason}


def _groups(findings: Findings) -> list[dict[str, Any]]:
    """Readings of groups, as lines of group, layer, measure and numbers."""
    names = list(dict.fromkeys(r.group for r in findings.readings if r.group is not None))[:_MOST_GROUPS]
    wanted, measures = set(names), {m.name for m in MEASURES if m.per_group}
    return [
        {"group": r.group, "layer": str(r.layer), **_plain(r)}
        for r in findings.readings
        if r.group in wanted
        and r.measure in measures
        and r.variant == "definition"
        and r.layer is not None
        and math.isfinite(r.value)
    ]
