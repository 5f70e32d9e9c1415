"""What is known of whether a space should be repaired, in words, and the commands that find out more."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from isotrope.findings import Findings
from isotrope.report.headline import find_level
from isotrope.sources import EMBEDDED

#: Why the page does not colour what a repair changes.
_SHAPE = (
    "A repair always makes these numbers look more even. That is a change of shape and no evidence that search or "
    "similarity improve: on all-MiniLM-L6-v2, whose space is healthy, repairs cost two to five points of STS."
)


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
        return {"title": title, "text": [*said, _SHAPE], "commands": [_prove(findings)]}
    if find_level(findings) == 0:
        title = "Leave this space alone unless an evaluation says otherwise"
        first = "The verdict finds nothing wrong with it, and a repair costs a healthy space points."
    else:
        title = "Whether a repair would help is not known yet"
        first = "The shape of a space does not tell whether a task gains from a repair."
    return {"title": title, "text": [first, _SHAPE], "commands": [_ask(findings, folder), _prove(findings)]}


def _ask(findings: Findings, folder: str) -> dict[str, str]:
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


def _prove(findings: Findings) -> dict[str, str]:
    """The command that measures a task with and without a repair."""
    model = shlex.join(_model(findings)) if findings.model else "--model MODEL"
    command = " ".join(part for part in ("isotrope evaluate sts", model, "--data DATA --repair softdecay") if part)
    return {"what": "Prove it on a task, or on your own documents with evaluate retrieval:", "command": command}


def _model(findings: Findings) -> list[str]:
    return [] if findings.model == EMBEDDED else ["--model", str(findings.model)]
