"""isotrope compare: what changed between runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from isotrope.findings import Findings, Reading
from isotrope.runs.retention import StatisticFiles
from isotrope.runs.run import Run
from isotrope.scanner import scan
from testkit.command import Command, one_sentence


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the runs a (healthy), b (collapsed) and c (healthy, fewer rows, other rows)."""
    folder, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(7)
    rows = {"a": rng.normal(size=(400, 8)), "b": rng.normal(size=(400, 8)) + 10, "c": rng.normal(size=(300, 8))}
    for name in rows:
        scan(vectors=rows[name], measures="moments", output=folder / name)
    return folder


@pytest.fixture
def runs(isotrope: Command, scanned: Path, tmp_path: Path) -> Command:
    """The command, where copies of the runs a, b and c are."""
    shutil.copytree(scanned, tmp_path, dirs_exist_ok=True)
    return isotrope


def _changes(document: dict, run: str) -> dict:
    return {c["measure"]: c for c in document["changes"] if c["run"] == run and c["layer"] == 0}


def test_json_is_one_document_for_three_runs(runs: Command) -> None:
    result = runs("compare", "a", "b", "c", "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert (document["before"], document["after"]) == ("a", ["b", "c"])
    b, c = _changes(document, "b"), _changes(document, "c")
    assert b["mean_cosine"]["beyond"] is True
    assert b["mean_cosine"]["difference"] == pytest.approx(b["mean_cosine"]["after"] - b["mean_cosine"]["before"])
    assert b["mean_cosine"]["note"] is None
    assert b["kept_dimensions"]["beyond"] is None
    assert c["isoscore"]["beyond"] is False
    assert "400 and 300" in c["isoscore"]["note"]


def test_in_words(runs: Command) -> None:
    result = runs("compare", "a", "b")
    assert result.code == 0
    assert "Verdict: healthy -> collapsed." in result.out
    (line,) = [line for line in result.out.splitlines() if line.startswith("mean_cosine ")]
    assert line.rstrip().endswith("beyond its interval")
    assert "different numbers of rows" not in result.out
    assert "different numbers of rows" in runs("compare", "a", "c").out


def test_a_run_with_itself(runs: Command) -> None:
    out = runs("compare", "a", "a").out
    assert " 0 changed beyond their interval, 0 within it, 0 without an interval" in out
    assert "Verdict" not in out


def test_filters(runs: Command) -> None:
    document = runs("compare", "a", "b", "--measures", "isoscore,eee", "--json").json
    assert {c["measure"] for c in document["changes"]} == {"isoscore", "eee"}
    document = runs("compare", "a", "b", "--layers", "-1", "--json").json
    assert {c["layer"] for c in document["changes"]} == {0}


def test_refusals(runs: Command) -> None:
    assert "did you mean" in one_sentence(runs("compare", "a", "b", "--measures", "isoscor"))
    assert "no layer '3'" in one_sentence(runs("compare", "a", "b", "--layers", "3"))
    assert "share no reading" in one_sentence(runs("compare", "a", "b", "--measures", "tokens"))
    assert "two runs" in one_sentence(runs("compare", "a"))
    Path("empty").mkdir()
    assert "'empty' is not a run" in one_sentence(runs("compare", "a", "empty"))
    assert "'nosuch' is not a run" in one_sentence(runs("compare", "nosuch", "a"))
    Path("notes.txt").write_text("no vectors")
    assert "'notes.txt' is not a run" in one_sentence(runs("compare", "a", "notes.txt"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"format": 2}', "format 2"),
        ('{"format": "1"}', "format '1'"),
        ('{"format": 1}', "damaged"),
        ("[]", "JSON object"),
        ("{", "not JSON"),
        ("\udcff", "not JSON"),
    ],
)
def test_damaged_findings(text: str, word: str, runs: Command) -> None:
    Path("b/findings.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    sentence = one_sentence(runs("compare", "a", "b"))
    assert word in sentence
    assert "b/findings.json" in sentence


def test_a_damaged_table(runs: Command) -> None:
    Path("b/tables/spectra.parquet").write_bytes(b"PAR1 but not much more")
    assert "spectra.parquet" in one_sentence(runs("compare", "a", "b"))


def _save_run(name: str, states: int) -> None:
    """The run folder of a model with so many hidden states."""
    layers = list(range(states))
    readings = [Reading(i, "mean_cosine", i / 100) for i in layers]
    names = {str(i): str(i) for i in layers}
    Run(name).save(Findings(readings, layers, names, source={"states": states, "width": 8}), StatisticFiles({}, {}))


def test_models_of_different_depth(isotrope: Command) -> None:
    _save_run("small", 7)
    _save_run("large", 31)
    document = isotrope("compare", "small", "large", "--json").json
    assert [(c["layer"], c["other_layer"]) for c in document["changes"]] == [(i, 5 * i) for i in range(7)]
    (pairing,) = document["alignments"]
    assert (pairing["run"], pairing["by"], pairing["only_first"]) == ("large", "depth", [])
    assert pairing["only_second"] == [i for i in range(31) if i % 5]
    out = isotrope("compare", "small", "large").out
    assert "Layers are paired by relative depth (7 and 31 layers); --align name pairs them by name." in out
    assert "Without a partner in the second run: layers 1 to 4, 6 to 9, 11 to 14" in out
    assert "6 : 30" in out
    document = isotrope("compare", "small", "large", "--align", "name", "--json").json
    assert [(c["layer"], c["other_layer"]) for c in document["changes"]] == [(i, i) for i in range(7)]
    assert "say depth or name" in one_sentence(isotrope("compare", "small", "large", "--align", "size"))
