"""One list of options: dataclasses, the command line and public signatures agree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import fields
from inspect import Parameter, signature
from typing import Annotated, Any

import pytest
import typer

import isotrope
from isotrope.cli.options import Keywords, OptionGroup, derive_options
from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.finetuning.settings import Training
from isotrope.options import ScanOptions, find_changes, list_options, option
from isotrope.sources.input import Input
from isotrope.studies.options import StudyOptions
from isotrope.studies.run_all import STUDIES, all_studies
from testkit.command import find_command

#: What `isotrope.scan` takes besides the options.
NOT_OPTIONS = {"progress"}

#: Defaults of public functions that differ from the dataclass on purpose.
DIFFERENT = {
    "advise": {"layers"},  # None: the advice chooses
    "evaluate_sts": {"layers"},  # None: the protocol chooses
    "evaluate_retrieval": {"split"},  # of the judgements, not of a dataset
    "evaluate_glue": {"batch_size", "max_length"},  # of training
}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return {name: p.default for name, p in signature(function).parameters.items() if p.kind not in kinds}


def command_defaults(*path: str) -> dict[str, Any]:
    command, _ = find_command(path)
    return {parameter.name: parameter.default for parameter in command.params}


def option_defaults(*kinds: type) -> dict[str, Any]:
    return {name: f.default for kind in kinds for name, f in list_options(kind).items()}


def test_scan_takes_every_option_with_its_default() -> None:
    expected = option_defaults(Input, Engine, ScanOptions)
    found = defaults(isotrope.scan)
    assert {name: found[name] for name in found if name not in NOT_OPTIONS} == expected


def test_the_command_scan_takes_every_option_with_its_default() -> None:
    expected = option_defaults(Input, Engine, ScanOptions)
    found = command_defaults("scan")
    assert {name: found[name] for name in expected} == expected
    assert found.keys() - expected.keys() == {"input", "corpus", "dry_run", "fail_on", "junit", "json"}


def test_scan_hands_every_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    @contextmanager
    def keep(engine: Engine, reading: Input) -> Any:
        given.extend((engine, reading))
        raise InputError("enough")
        yield

    monkeypatch.setattr(Engine, "open", keep)
    expected = {name: f"any {name}" for name in list_options(Input)}
    cluster = {"engine": "ray", "address": "any address", "workers": 3, "gpus_per_worker": 0.5}
    with pytest.raises(InputError, match="enough"):
        isotrope.scan(**expected, **cluster)
    engine, reading = given
    assert find_changes(reading) == expected
    assert find_changes(engine) == cluster


@pytest.mark.parametrize("name", ["advise", "evaluate_sts", "evaluate_retrieval", "evaluate_glue"])
def test_functions_share_the_defaults_of_options(name: str) -> None:
    known = option_defaults(Input, Engine)
    if name == "evaluate_glue":
        training = option_defaults(Training)
        assert {key: defaults(isotrope.evaluate_glue)[key] for key in training} == training
    found = defaults(getattr(isotrope, name))
    shared = (known.keys() & found.keys()) - DIFFERENT[name]
    assert shared
    assert {key: found[key] for key in shared} == {key: known[key] for key in shared}
    assert all(found[key] != known[key] for key in DIFFERENT[name])


@pytest.mark.parametrize(
    ("path", "function", "different"),
    [
        ("advise", isotrope.advise, set()),
        ("build", isotrope.build, {"model", "text"}),  # which the command requires
        ("evaluate sts", isotrope.evaluate_sts, {"sets"}),
        ("evaluate retrieval", isotrope.evaluate_retrieval, set()),
        ("evaluate index", isotrope.evaluate_index, set()),
        ("evaluate glue", isotrope.evaluate_glue, {"methods"}),  # a list in Python, one text in a command
    ],
)
def test_commands_share_the_defaults_of_functions(path: str, function: Callable[..., Any], different: set[str]) -> None:
    command, known = command_defaults(*path.split()), defaults(function)
    shared = {name for name in (command.keys() & known.keys()) - different if known[name] is not Parameter.empty}
    assert shared
    assert {name: command[name] for name in shared} == {name: known[name] for name in shared}


#: The arguments that every study takes.
OF_EVERY_STUDY = {"models", "text", "quick", "seed", "batch_size", "device", "resume", "progress", "say"}


def study_defaults() -> dict[str, Any]:
    """The defaults of the arguments that every study takes."""
    return {field.name: field.default for field in fields(StudyOptions) if field.name in OF_EVERY_STUDY}


@pytest.mark.parametrize("name", [*STUDIES, "all"])
def test_commands_of_studies_take_what_the_functions_take(name: str) -> None:
    function = all_studies if name == "all" else STUDIES[name].run
    command, known = command_defaults("study", name), defaults(function) | study_defaults()
    assert command.keys() - {"json"} == known.keys() - {"progress", "say"}
    same = known.keys() - {"progress", "say", "output", "models", "others", "sweep"}
    assert {key: command[key] for key in same} == {key: known[key] for key in same}


@pytest.mark.parametrize("function", [all_studies, *(study.run for study in STUDIES.values())])
def test_studies_share_the_defaults_of_options(function: Callable[..., Any]) -> None:
    known = option_defaults(StudyOptions) | option_defaults(Training)
    found = defaults(function)
    shared = (known.keys() & found.keys()) - {"output"}
    assert shared
    assert {name: found[name] for name in shared} == {name: known[name] for name in shared}


def test_a_command_gets_instances_and_keywords() -> None:
    got: list[Any] = []

    @derive_options(after={"own": "seed"})
    def command(
        asked: Annotated[ScanOptions, OptionGroup(ScanOptions, "seed sample")],
        engine: Annotated[Keywords, OptionGroup(Engine, "workers", "Here", {"workers": {"help": "How many."}})],
        own: Annotated[str, typer.Option(help="Its own.")] = "x",
    ) -> None:
        got.extend((asked, engine, own))

    assert list(signature(command).parameters) == ["seed", "own", "sample", "workers"]
    workers = signature(command).parameters["workers"].annotation.__metadata__[0]
    assert (workers.help, workers.rich_help_panel) == ("How many.", "Here")
    command(seed=3, own="y", sample=5, workers=None)
    assert got == [ScanOptions(seed=3, sample=5), {"workers": None}, "y"]


def test_only_declared_fields_are_options() -> None:
    undeclared = {f.name for f in fields(Input)} - list_options(Input).keys()
    assert undeclared == {"token_weights", "in_order", "seed", "run_folder"}
    assert option(3, "Help.").default == 3


def test_reading_an_array_loads_nothing_that_reads_something_else() -> None:
    code = """
import sys
import numpy as np
from isotrope.engines.engine import Engine
from isotrope.sources.input import Input
with Engine().open(Input(vectors=np.eye(4))) as source:
    assert sum(len(batch.rows.sequence) for batch in source.batches()) == 4
others = [f"isotrope.{name}." for name in ("sources.text", "sources.media", "repairs", "studies", "report")]
print([name for name in sys.modules if f"{name}.".startswith(tuple(others))])
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
