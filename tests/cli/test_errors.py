"""Whatever goes wrong is one sentence; the exit code says whose fault it is, and the traceback comes on request."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

from isotrope.runs.run import Run
from testkit.command import Command, one_sentence


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect, somewhere in a scan."""

    def scan_source(*_: Any, **__: Any) -> NoReturn:
        raise KeyError("tok\x1bens\nof two lines")

    monkeypatch.setattr("isotrope.scanner.scan_source", scan_source)


@pytest.mark.usefixtures("broken")
class TestDefects:
    def test_one_sentence(self, isotrope: Command, healthy: Path) -> None:
        result = isotrope("scan", healthy, "-o", "run")
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            "isotrope: this is a defect of isotrope, not of your input (KeyError: 'tok\\x1bens\\nof two lines'); "
            "--traceback shows where: please report it.\n"
        )

    @pytest.mark.parametrize("arguments", [("--traceback", "scan"), ("scan", "--traceback")])
    def test_traceback(self, isotrope: Command, healthy: Path, arguments: tuple[str, str]) -> None:
        result = isotrope(*arguments, healthy, "-o", "run")
        assert result.code == 1
        assert result.err.startswith("Traceback (most recent call last):\n")
        assert 'raise KeyError("tok' in result.err
        assert "\x1b" not in result.err
        assert result.err.splitlines()[-1].startswith("isotrope: this is a defect")

    def test_variable(self, isotrope: Command, healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ISOTROPE_TRACEBACK", "1")
        assert isotrope("scan", healthy, "-o", "run").err.startswith("Traceback")
        monkeypatch.setenv("ISOTROPE_TRACEBACK", "0")
        assert isotrope("scan", healthy, "-o", "run").err.startswith("isotrope: ")


def test_a_refusal_has_a_traceback_too_and_its_own_code(isotrope: Command) -> None:
    result = isotrope("scan", "none.npy", "--traceback")
    assert result.code == 2
    assert result.err.startswith("Traceback")
    assert result.err.splitlines()[-1].startswith("isotrope: there is no file none.npy")
    assert "--traceback" in one_sentence(isotrope("scan", "--", "--traceback"))  # behind --, it is an input


def test_help_says_the_exit_codes(isotrope: Command) -> None:
    text = " ".join(isotrope("--help").out.split())
    assert "Exit codes: 0 success; 1 a gate tripped, or isotrope itself failed; 2 bad input." in text
    assert "--traceback" in text


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_not_utf8(isotrope: Command, rng: np.random.Generator) -> None:
    name = os.fsdecode(b"\xff.npy")
    with open(name, "wb") as file:
        np.save(file, rng.normal(size=(300, 4)))
    scanned = isotrope("scan", name, "-o", os.fsdecode(b"run\xff"))
    assert scanned.code == 0, scanned
    assert r"Results: run\xff/" in scanned.out
    findings = Run(os.fsdecode(b"run\xff")).findings()
    assert findings.source["files"][0]["path"] == r"\xff.npy"
    assert isotrope("report", os.fsdecode(b"run\xff")).code == 0
    assert isotrope("scan", name, "--json").json["source"]["files"][0]["path"] == r"\xff.npy"
    assert isotrope("repair", "fit", name, "--with", "centering", "-o", os.fsdecode(b"repair\xff")).code == 0
    table = os.fsdecode(b"\xfe.parquet")
    assert isotrope("repair", "apply", os.fsdecode(b"repair\xff"), name, "-o", table).code == 0
    with open(table, "rb") as file:
        assert len(pd.read_parquet(file)) == 300
    # pyarrow opens no file of such a name by itself.
    assert r"\xfe.parquet cannot be read, because its name is not UTF-8; rename it." in one_sentence(
        isotrope("scan", table)
    )
    assert "there is no file or model" in one_sentence(isotrope("scan", os.fsdecode(b"none\xff")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verdict": {"word": "healthy", "statements": [{"level": 9, "text": "x", "layers": []}]}}, "level 9"),
        ({"verdict": {"word": "", "statements": []}}, "no word"),
        ({"source": {"corpus": {"path": "a.txt"}}}, "name is None"),
    ],
)
def test_findings_that_were_edited(isotrope: Command, healthy: Path, change: dict[str, Any], said: str) -> None:
    assert isotrope("scan", healthy, "-o", "run").code == 0
    Path("run/statistics/index.json").unlink()  # with it, the checksum would refuse the file
    path = Path("run/findings.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for command in (("report", "run"), ("compare", "run", "run")):
        assert said in one_sentence(isotrope(*command))


def test_tables_that_were_edited(isotrope: Command, healthy: Path) -> None:
    assert isotrope("scan", healthy, "-o", "run").code == 0
    Path("run/statistics/index.json").unlink()
    pd.DataFrame({"layer": ["0"]}).to_parquet("run/tables/spectra.parquet")
    assert "the tables of the run are damaged (KeyError('singular_value'))" in one_sentence(isotrope("report", "run"))
