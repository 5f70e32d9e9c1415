"""Whether to repair: what a page says of it, and the commands that it gives."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from isotrope.findings import Findings, Statement, Verdict
from isotrope.report.advice import describe_advice
from testkit.command import find_command


def _findings(word: str, level: int, **source: Any) -> Findings:
    return Findings([], [0], verdict=Verdict(word, (Statement(level, "", layers=(0,)),)), source=source)


def test_a_healthy_space_is_to_be_left_alone() -> None:
    said = describe_advice(_findings("healthy", 0), "run", None)
    assert said["title"] == "Leave this space alone unless an evaluation says otherwise"


def test_of_others_nothing_is_claimed() -> None:
    said = describe_advice(_findings("collapsed", 3), "run", None)
    assert said["title"] == "Whether a repair would help is not known yet"
    assert "two to five points" in " ".join(said["text"])


@pytest.mark.parametrize(
    ("advice", "title"),
    [
        ({"advice": "none", "reasons": ["It is even."]}, "The advice is to leave this space alone"),
        ({"advice": "softdecay", "reasons": ["It is even."]}, "The advice is to repair it: softdecay"),
    ],
)
def test_advice_comes_first(advice: dict[str, Any], title: str) -> None:
    said = describe_advice(_findings("healthy", 0), "run", advice)
    assert (said["title"], said["text"][0]) == (title, "It is even.")
    assert len(said["commands"]) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"files": [{"path": "my rows.npy"}]}, "isotrope advise --vectors 'my rows.npy' --json > 'a run/advice.json'"),
        ({"files": [{"path": "a"}, {"path": "b"}]}, "isotrope advise --vectors VECTORS --json > 'a run/advice.json'"),
        (
            {"model": "bert", "corpus": {"path": "t.txt"}},
            "isotrope advise --model bert --text t.txt --json > 'a run/advice.json'",
        ),
        (
            {"model": "all-MiniLM-L6-v2", "corpus": {"name": "python"}},
            "isotrope advise --text TEXT --json > 'a run/advice.json'",
        ),
    ],
)
def test_the_commands_are_ones_that_there_are(source: dict[str, Any], expected: str) -> None:
    commands = [c["command"] for c in describe_advice(_findings("healthy", 0, **source), "a run", None)["commands"]]
    assert commands[0] == expected
    for words in map(shlex.split, commands):
        command, rest = find_command(words[1:])
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options
