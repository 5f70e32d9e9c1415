"""The command that is useful after a scan."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.storage.redaction import mask_arguments

if TYPE_CHECKING:
    from isotrope.findings import Findings
    from isotrope.sources.input import Input

#: Options on how an input is read, which the next command needs too.
_READING = ("revision", "gguf_file", "column", "split")

#: A gate for a space that is sound today.
_WATCH = "mean_cosine > 0.5"

#: The text that a model reads where none is given, by its name.
_DEFAULT_TEXT = "python-manual"

#: Verdicts that say nothing of the space.
_UNKNOWN = ("unknown", "too few rows")


def suggest_command(findings: Findings, reading: Input, folder: Path) -> str:
    """The command to type after a scan: it depends on the verdict and on what was scanned.

    Args:
        findings: What the scan found.
        reading: Where its rows came from.
        folder: Its run folder.

    >>> from isotrope.findings import Findings, Statement, Verdict
    >>> from isotrope.sources.input import Input
    >>> collapsed = Findings([], verdict=Verdict("collapsed", (Statement(3, "Collapsed.", (0,)),)))
    >>> suggest_command(collapsed, Input(vectors="my rows.npy"), Path("run"))
    "isotrope advise 'my rows.npy'"
    """
    if findings.verdict.word in _UNKNOWN:
        return "isotrope catalogue"
    if findings.source.get("modality", "text") != "text":
        return _join("figure", str(folder), "mean_cosine", "-o", "mean_cosine.pdf")
    options = _name_input(reading)
    if any(statement.level for statement in findings.verdict.statements if statement.layers):
        return _join("advise", *options)
    if reading.vectors is not None:
        return _join("scan", *options, "--fail-on", _WATCH)
    return f"{_join('compare', str(folder))} OTHER_RUN"


def _name_input(reading: Input) -> list[str]:
    """Arguments that name the input again; text from a pipe cannot be read twice."""
    named = [] if reading.vectors is None else [reading.vectors]
    named += [] if reading.model is None else ["--model", reading.model]
    if reading.vectors is None:
        named += ["--text", "FILE" if reading.text == "-" else reading.text or _DEFAULT_TEXT]
    for name in _READING:
        if (value := getattr(reading, name)) is not None:
            named += [f"--{name.replace('_', '-')}", str(value)]
    return named


def _join(*arguments: str) -> str:
    return shlex.join(["isotrope", *mask_arguments(arguments)])
