"""The help of every command is the one that was recorded."""

from __future__ import annotations

import re

import pytest

from goldens import FOLDER, RECORD
from goldens.help_texts import commands, help_of, read_help, versions

LAID_OUT_BY, RECORDED = read_help(FOLDER / "help.txt")


def _words(text: str) -> list[str]:
    """The words of a text, whatever the layout: other versions of typer draw other boxes and break other lines."""
    return sorted(re.findall(r"[\w'.\-]*\w", text))


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_is_the_recorded_one(words: tuple[str, ...]) -> None:
    line = " ".join(("isotrope", *words, "--help"))
    advice = f"the text of `{line}` has changed; after a deliberate change: {RECORD} help"
    assert line in RECORDED, advice
    text = help_of(words)
    if versions() == LAID_OUT_BY:
        assert text == RECORDED[line], advice
    else:
        assert _words(text) == _words(RECORDED[line]), advice


def test_no_command_is_lost() -> None:
    there = {" ".join(("isotrope", *words, "--help")) for words in commands()}
    assert RECORDED.keys() <= there, f"commands were lost; after a deliberate change: {RECORD} help"
