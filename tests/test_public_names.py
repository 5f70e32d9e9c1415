"""Public names, their parameters and the options of commands are still there; more of them may be."""

from __future__ import annotations

import copy
import json
import re
import warnings
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from goldens import FOLDER, RECORD
from goldens.public_names import describe, describe_names, find_losses
from testkit.command import find_command

RECORDED: dict[str, Any] = json.loads((FOLDER / "public_names.json").read_text("utf-8"))
DOCUMENTED: list[tuple[str, str]] = json.loads((FOLDER / "documented_imports.json").read_text("utf-8"))

#: Commands and options that scripts rely on.
COMMANDS = """
scan --model --revision --gguf-file --text --column --split --corpus --vectors --pooling --layers --measures --group-by
scan --special-tokens --sample --seed --batch-size --device --engine --address --workers --trust-remote-code --precision
scan --dry-run --resume --fail-on -o --json
repair fit --with --alpha --form --strength --dimensions --directions --clusters -o
repair apply -o
repair show
advise --vectors --model --text --json
build --text -o
evaluate sts --model --data --repair --fit-text --layers --pooling --protocol --json
evaluate retrieval --model --data --repair --fit-text --layers --pooling --json
evaluate retrieval --documents --queries --qrels --repair --run-files
evaluate index --queries --qrels --recall --k --repair --json
evaluate glue --model --data --json
study uniformity --models --quick -o
study anisotropy --models --quick -o
study latent-geometry --models --quick -o
study norm-variance --models --quick -o
study all --quick -o
study latent-geometry predict
compare --html
report -o
figure -o
catalogue --json
"""

#: Names and defaults that scripts rely on, as they are called.
CALLS = """
isotrope.scan(model=None, text=None, vectors=None, layers='all', measures=None, seed=0)
isotrope.measure(X, names=None)
isotrope.evaluate_index(vectors, queries=None, qrels=None, recall=0.95, k=10)
isotrope.load_repair(folder)
isotrope.SoftDecay(alpha=-0.6, form='shifted')
isotrope.Whitening(n_components=None, strength=1.0)
isotrope.AllButTheTop(n_directions=None)
isotrope.Centering()
isotrope.ClusterIsotropy()
isotrope.Flow()
isotrope.nn.SoftDecay(alpha=-0.5, form='shifted')
isotrope.nn.attach(model)
isotrope.nn.GeometryMonitor()
"""


@cache
def _names() -> dict[str, Any]:
    return describe_names()


@pytest.mark.parametrize("name", RECORDED)
def test_the_name_is_called_as_before(name: str) -> None:
    losses = find_losses(RECORDED[name], _names().get(name))
    assert not losses, f"{name}: {'; '.join(losses)}; after a deliberate change: {RECORD} names"


def test_what_is_added_is_no_loss_and_what_is_lost_is_one() -> None:
    def before(X: Any, names: Any = None, *, seed: int = 0) -> None: ...
    def more(X: Any, names: Any = None, extra: int = 1, *, seed: int = 0, other: int = 2) -> None: ...
    def fewer(X: Any, *, seed: int = 0) -> None: ...
    def another_order(names: Any, X: Any = None, *, seed: int = 0) -> None: ...
    def another_default(X: Any, names: Any = None, *, seed: int = 1) -> None: ...
    def more_needed(X: Any, names: Any = None, *, other: int, seed: int = 0) -> None: ...

    assert not find_losses(describe(before), describe(before))
    assert not find_losses(describe(before), describe(more))
    for changed in (fewer, another_order, another_default, more_needed, 3):
        assert find_losses(describe(before), describe(changed)), changed
    assert find_losses(describe(before), None)
    findings = RECORDED["isotrope.Findings"]
    fewer_members = copy.deepcopy(findings)
    del fewer_members["members"]["to_frame"]
    assert find_losses(findings, fewer_members)
    assert not find_losses(fewer_members, findings)


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_the_call_is_there(call: str) -> None:
    name, parameters = re.fullmatch(r"(.*)\((.*)\)", call).groups()  # type: ignore[union-attr]
    described = describe(getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]))
    missing = set(filter(None, parameters.split(", "))) - set(described["parameters"])
    assert not missing, described["parameters"]


@pytest.mark.parametrize("line", COMMANDS.strip().splitlines())
def test_the_options_are_there(line: str) -> None:
    command, _ = find_command(re.findall(r"(?<!\S)[a-z][a-z-]*", line))
    there = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<!\S)-\S+", line)) <= there


@pytest.mark.parametrize(("module", "name"), DOCUMENTED)
def test_what_the_documentation_of_0_1_imports_is_there(module: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert callable(getattr(import_module(module), name))
