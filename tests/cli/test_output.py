"""Text from data reaches neither the terminal nor a spreadsheet as a command."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.text import Text

import isotrope as library
from isotrope.cli.output import SafeConsole
from isotrope.formats.printable import escape_controls
from testkit.command import Command, one_sentence

SOURCE = Path(library.__file__).parent

#: Names of groups: colours, a title, C1, bidirectional and zero-width controls, lines, formulas, markup.
GROUPS = [
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b31m",
    "gnp.\u202efdp",
    "zero\u200bwidth",
    "a\rb",
    "a\nb",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    'quote"comma,',
    "[red]markup[/red]",
    "<b>bold</b>",
]


@pytest.fixture
def rows(tmp_path: Path, rng: np.random.Generator) -> Path:
    """60 rows of each group."""
    groups = GROUPS * 60
    vectors = list(rng.normal(size=(len(groups), 4)))
    pd.DataFrame({"vector": vectors, "group": groups}).to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def hidden(text: str) -> list[str]:
    return sorted({character for character in text if escape_controls(character) != character})


def test_groups(isotrope: Command, rows: Path) -> None:
    scanned = isotrope("scan", rows, "--group-by", "group", "-o", "run")
    assert scanned.code == 0, scanned
    assert hidden(scanned.out + scanned.err) == []
    for shown in (r"\x1b[31mred", r"\x9b31m", r"gnp.\u202efdp", r"a\rb", r"a\nb", "[red]markup[/red]"):
        assert shown in scanned.out
    document = isotrope("scan", rows, "--group-by", "group", "--json")
    assert hidden(document.out) == []
    assert {r["group"] for r in document.json["readings"]} == {None, *GROUPS}
    page = Path("run/report.html").read_text()
    assert hidden(page) == []
    assert r"gnp.\\u202efdp" in page
    assert "<b>bold</b>" not in page


def test_csv_is_what_the_parquet_is(isotrope: Command, rows: Path) -> None:
    isotrope("scan", rows, "--group-by", "group", "-o", "run")
    exact = pd.read_parquet("run/readings.parquet")
    found = pd.read_csv("run/readings.csv", keep_default_na=False, na_values=[""])
    assert len(found) == len(exact)
    for column in ("value", "low", "high", "n", "null"):
        np.testing.assert_allclose(found[column].to_numpy(float), exact[column].to_numpy(float), rtol=1e-15)
    wanted = [g if pd.isna(g) or g[0] not in "=+-@\t" else f"'{g}" for g in exact["group"]]
    assert [g if isinstance(g, str) else None for g in found["group"]] == [None if pd.isna(g) else g for g in wanted]
    first = Path("run/readings.csv").read_text().splitlines()[:2]
    assert first[0].startswith('"model","revision","layer","measure","value"')
    assert re.fullmatch(r'"","","0","\w+",-?[\d.e-]+,.*', first[1])


def test_what_cannot_be_read_is_named_without_its_controls(isotrope: Command) -> None:
    said = one_sentence(isotrope("scan", "no\x1b[2J\u202e\n.npy"))
    assert r"no\x1b[2J\u202e" in said


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "\x9b"])
def test_every_kind_of_text_is_escaped(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = SafeConsole(width=80, highlight=False, markup=False, emoji=False)
    out.print(text)
    out.print(Text(f"a{text}", style="bold"))
    out.print(Text.assemble((text, "bold"), text))
    assert hidden(capsys.readouterr().out) == []


def test_nothing_is_printed_by_another_way() -> None:
    """Help and the version are texts of the program itself."""
    for path in sorted(SOURCE.rglob("*.py")):
        code = path.read_text()
        name = path.relative_to(SOURCE).as_posix()
        if name not in ("cli/output.py",):
            own = re.findall(r"\btyper\.echo\((?!context\.get_help\(\)|f\"isotrope \{__version__\}\")", code)
            assert own == [], name
            assert re.findall(r"\bConsole\((?!Console)", code) == [], name
            assert re.findall(r"(?m)^\s+print\(", code) == [], name
        if name != "formats/printable.py":
            assert ".to_csv(" not in code, name
            assert "csv.writer(" not in code, name


def at_a_terminal(folder: Path, *arguments: str, columns: int = 80) -> str:
    """What a command shows at a terminal of so many columns, without colours."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "PYTHONPATH": str(SOURCE.parent)}
    process = subprocess.Popen(
        [sys.executable, "-m", "isotrope", *arguments],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, cwd=folder, env=variables,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait() == 0, process.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


def words_of(text: str) -> set[str]:
    return {word for word in re.split(r"\s+", text) if re.fullmatch(r"[A-Za-z_]{4,}", word)}


@pytest.mark.long
def test_eighty_columns(isotrope: Command, rows: Path, tmp_path: Path) -> None:
    for arguments in (
        ("scan", rows, "--group-by", "group", "-o", "run"),
        ("scan", rows, "--sample", 500, "--seed", 3, "--measures", "moments,spread", "-o", "other"),
        ("repair", "fit", rows, "--with", "whitening", "-o", "repair"),
    ):
        assert isotrope(*arguments).code == 0
    for command in (
        ["repair", "show", "repair", "rows.parquet"],
        ["compare", "run", "other"],
        ["catalogue"],
        ["catalogue", "isoscore"],
        ["scan", "rows.parquet", "--group-by", "group", "-o", "again"],
        ["scan", "rows.parquet", "--measures", "isoscore,eee", "-o", "plain"],
    ):
        narrow = at_a_terminal(tmp_path, *command)
        assert max(map(len, narrow.splitlines())) <= 80, command
        assert hidden(narrow) == []
        if command[0] != "scan":  # a word that was cut would be two words that are nowhere in the whole
            assert words_of(narrow) - words_of(isotrope(*command).out) <= {"left", "width", "this"}, command


def test_a_narrow_table_says_what_it_leaves_out(isotrope: Command, rows: Path, tmp_path: Path) -> None:
    assert isotrope("repair", "fit", rows, "--with", "whitening", "-o", "repair").code == 0
    shown = ("repair", "show", "repair", "rows.parquet", "--measures", "moments,spread")
    assert "left out at this width: " in at_a_terminal(tmp_path, *shown, columns=44)
    assert "left out" not in isotrope(*shown).out
    assert json.loads(isotrope(*shown, "--json").out)["effects"]
