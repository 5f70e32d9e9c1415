"""What a command does with the outcomes of its gates: print them, write them for a CI server, and exit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isotrope.cli.output import echo
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.gate import Gate, Outcome


def check_junit(junit: Path | None, fail_on: Sequence[str] | None) -> None:
    """Refuse a file of test results without a gate, before anything is read."""
    if junit is not None and not fail_on:
        raise InputError("--junit writes the outcomes of gates, and there is none; give one with --fail-on.")
    if junit is not None and junit.is_dir():
        raise InputError(f"{str(junit)!r} is a folder, expected a file for --junit; give the name of a file.")


def write_junit(path: Path, suite: str, gates: Sequence[Gate], outcomes: Sequence[Outcome]) -> None:
    """Write outcomes as JUnit XML, whole or not at all."""
    from isotrope.formats.junit import JunitCase, format_junit
    from isotrope.storage.files import write_text

    cases = []
    for gate, outcome in zip(gates, outcomes, strict=True):
        kind = "error" if outcome.undecided else "failure" if outcome.failed else "passed"
        cases.append(JunitCase(gate.text, **{kind: outcome.text}))
    write_text(path, format_junit(suite, cases))


def describe_outcomes(gates: Sequence[Gate], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Describe decided gates as plain data."""
    return [{"gate": g.text, "failed": o.failed, "text": o.text} for g, o in zip(gates, outcomes, strict=True)]


def check_decided(outcomes: Sequence[Outcome]) -> None:
    """Raise the error of the first gate that could not be decided."""
    for outcome in outcomes:
        if outcome.undecided:
            raise InputError(outcome.text)


def conclude(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes, and exit with 1 where a gate tripped."""
    check_decided(outcomes)
    for outcome in outcomes:
        echo(outcome.text, err=True)
    if any(outcome.failed for outcome in outcomes):
        raise typer.Exit(1)
