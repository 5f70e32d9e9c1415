"""A run as the plain data of its page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope import __version__
from isotrope.errors import InputError, StoreError
from isotrope.findings import Findings, Reading
from isotrope.formats.json import to_plain
from isotrope.measures import get
from isotrope.report import figure_data as drawn
from isotrope.report import tokens
from isotrope.report.attachments import beside
from isotrope.report.headline import facts, level, numbers, said
from isotrope.report.repair_advice import repair_words
from isotrope.verdict.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Readings of groups that a page holds: of these measures, for so many groups.
_OF_GROUPS = ("mean_cosine", "drift_share", "isoscore", "effective_rank_eigenvalues", "sequence_uniformity")
_MOST_GROUPS = 200


def document(findings: Findings, name: str, folder: Path | None = None) -> dict[str, Any]:
    """All that the page of one run shows. folder: where advice and evaluations may lie."""
    found = beside(folder) if folder is not None else {"advice": None, "evaluations": [], "notes": []}
    verdict = findings.verdict
    return {
        "name": name,
        "model": findings.title if findings.model else None,
        "facts": facts(findings),
        "verdict": {
            "word": verdict.word,
            "level": level(findings),
            "statements": [
                {"text": said(s.text, verdict.word), "level": s.level, "sure": s.sure} for s in verdict.statements
            ],
        },
        "numbers": numbers(findings),
        "layers": [{"label": str(x), "name": findings.layer_names.get(str(x), str(x))} for x in findings.layers],
        "width": findings.source.get("width"),
        "readings": _readings(findings),
        "across": [_plain(r) for r in findings.readings if r.layer is None and r.group is None],
        "groups": _groups(findings),
        "repairing": repair_words(findings, name if folder is None else str(folder), found["advice"]),
        **_from_tables(findings),
        "counts": findings.counts,
        "source": findings.source,
        "provenance": findings.provenance,
        **found,
    }


def _from_tables(findings: Findings) -> dict[str, Any]:
    """What is drawn from the tables of a run."""
    try:
        return {**drawn.drawn(findings), "tokens": tokens.tokens(findings)}
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:  # columns that are not as written
        raise StoreError(f"the tables of the run are damaged ({error!r}); run the scan again.") from error


def page_data(kind: str, runs: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The data of a page about one run or several, with what the measures mean."""
    names = dict.fromkeys(name for run in runs for name in [*run["readings"], *(r["measure"] for r in run["across"])])
    names |= dict.fromkeys(line["measure"] for run in runs for line in run["tried"] if line["measure"])
    return {
        "kind": kind,
        "version": __version__,
        "measures": {name: record(name) for name in names},
        "thresholds": [{**t._asdict(), "bound": t.bound} for t in THRESHOLDS],
        "runs": list(runs),
        **more,
    }


def record(name: str) -> dict[str, Any]:
    """What a page says of a measure; little of one that this isotrope does not know."""
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
    wanted = set(names)
    return [
        {"group": r.group, "layer": str(r.layer), **_plain(r)}
        for r in findings.readings
        if r.group in wanted and r.measure in _OF_GROUPS and r.layer is not None and math.isfinite(r.value)
    ]
