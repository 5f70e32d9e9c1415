"""Characters that cannot be seen are shown as escapes, wherever text from data is written."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrope.formats.printable import escape_controls, escape_data, escape_json, escape_line, escape_surrogates

#: Format characters that are visible signs in front of numbers or words.
_VISIBLE_FORMATS = {"Arab", "ARAB", "KAIT", "SYRI", "EGYP"}


def _hidden() -> list[str]:
    """Every hidden character, by Unicode's own table."""
    hidden = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        visible = category == "Cf" and unicodedata.name(character, "")[:4] in _VISIBLE_FORMATS
        if character != "\u061c" and visible:
            continue
        if category in ("Cc", "Cs", "Cf", "Zl", "Zp"):
            hidden.append(character)
    return hidden


def test_every_hidden_character_is_escaped() -> None:
    left = [hex(ord(c)) for c in _hidden() if c in escape_line(f"a{c}b") or len(escape_line(f"a{c}b")) < 4]
    assert left == []


def test_what_can_be_seen_stays() -> None:
    for text in ("plain", "Ä ß 漢字 עברית عربي ▁token Ġword", "😀 ½ –", "a\\b", "█▏●", "line\nline"):
        assert escape_controls(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("gnp.\u202efdp", r"gnp.\u202efdp"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\udcff.npy", r"\xff.npy"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_how_it_is_shown(text: str, shown: str) -> None:
    assert escape_line(text) == shown
    assert escape_data([{text: (text, 1)}]) == [{escape_controls(text): [escape_controls(text), 1]}]


@given(st.text(st.characters(codec=None)))
def test_json_means_the_same(text: str) -> None:
    document = json.dumps({"text": text, "list": [1, None]}, indent=1, ensure_ascii=False)
    escaped = escape_json(document)
    assert json.loads(escaped) == json.loads(document)
    assert escape_controls(escaped) == escaped


def test_surrogates_can_be_written_down() -> None:
    assert escape_surrogates("a\udcff\ud800ü\x1b").encode() == "a\\xff\\ud800ü\x1b".encode()
