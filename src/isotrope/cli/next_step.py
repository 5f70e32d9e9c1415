"""The command that is useful after a scan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.storage.redaction import mask_arguments

if TYPE_CHECKING:
    from isotrope.cli.inputs import Place
    from isotrope.findings import Findings

#: Options on how an input is read, which the next command needs too.
_READING = ("revision", "gguf_file", "column", "split")

#: A gate for a space that is sound today.
_WATCH = "mean_cosine > 0.5"

#: The text that a model reads where none is given, by its name.
_DEFAULT_TEXT = "python-manual"

#: Verdicts that say nothing of the space.
_UNKNOWN = ("unknown", "too few rows")


def next_command(findings: Findings, place: Place, given: Mapping[str, Any], folder: Path) -> str:
    """The command to type after a scan: it depends on the verdict and on what was scanned.

    Args:
        findings: What the scan found.
        place: Where its rows came from.
        given: The arguments of the scan, by name.
        folder: Its run folder.

    >>> from isotrope.cli.inputs import Place
    >>> from isotrope.findings import Findings, Statement, Verdict
    >>> collapsed = Findings([], verdict=Verdict("collapsed", (Statement(3, "Collapsed.", (0,)),)))
    >>> next_command(collapsed, Place(vectors="my rows.npy"), {}, Path("run"))
    "isotrope advise 'my rows.npy'"
    """
    if findings.verdict.word in _UNKNOWN:
        return "isotrope catalogue"
    if findings.source.get("modality", "text") != "text":
        return _join("figure", str(folder), "mean_cosine", "-o", "mean_cosine.pdf")
    options = _options(place, given)
    if any(statement.level for statement in findings.verdict.statements if statement.layers):
        return _join("advise", *options)
    if place.vectors is not None:
        return _join("scan", *options, "--fail-on", _WATCH)
    return f"{_join('compare', str(folder))} OTHER_RUN"


def _options(place: Place, given: Mapping[str, Any]) -> list[str]:
    """What names the input again; text from a pipe cannot be read twice."""
    named = [] if place.vectors is None else [place.vectors]
    named += [] if place.model is None else ["--model", place.model]
    if place.vectors is None:
        named += ["--text", "FILE" if place.text == "-" else place.text or _DEFAULT_TEXT]
    for name in _READING:
        if given.get(name) is not None:
            named += [f"--{name.replace('_', '-')}", str(given[name])]
    return named


def _join(*arguments: str) -> str:
    return shlex.join(["isotrope", *mask_arguments(arguments)])
