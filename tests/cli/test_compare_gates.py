"""isotrope compare as a gate in production: vectors or runs, tests, exit codes, JUnit XML and the page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from isotrope.scanner import scan
from isotrope.two_sample import shift_tests
from testkit.command import Command, one_sentence

SHIFT = 0.6


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors before, after a shift, like before, wider, and grown by shifted rows; and a run of the first two."""
    folder, rng = tmp_path_factory.mktemp("gates"), np.random.default_rng(7)
    before = rng.normal(size=(300, 6)) + 0.5
    rows = {
        "before": before,
        "after": rng.normal(size=(250, 6)) + 0.5 + SHIFT,
        "alike": rng.normal(size=(280, 6)) + 0.5,
        "wide": rng.normal(size=(100, 7)),
        "grown": np.concatenate([before, rng.normal(size=(40, 6)) + 2.0]),
    }
    for name, values in rows.items():
        np.save(folder / f"{name}.npy", values)
    for name in ("before", "after"):
        scan(vectors=rows[name], measures="moments", output=folder / f"{name}-run")
    scan(vectors=rows["after"], measures="moments", output=folder / "nothing-kept", keep="none")
    scan(vectors=rows["after"], measures="moments", sample=0, output=folder / "no-sample")
    return folder


@pytest.fixture
def gated(isotrope: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, among copies of the vectors and runs, with fewer permutations."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(shift_tests, "PERMUTATIONS", 199)
    monkeypatch.setattr(shift_tests, "RESAMPLES", 99)
    return isotrope


def _tests(document: dict) -> dict:
    return {record["test"]: record for record in document["tests"]}


def _measure_shift(before: np.ndarray, after: np.ndarray) -> float:
    """The distance of the means in standard deviations of the first set, without what the noise of both adds to it."""
    variances = [rows.var(axis=0, ddof=1).sum() for rows in (before, after)]
    distance = np.sum((before.mean(axis=0) - after.mean(axis=0)) ** 2)
    return float(np.sqrt((distance - variances[0] / len(before) - variances[1] / len(after)) / variances[0]))


NAMES = [("before.npy", "after.npy"), ("before-run", "after-run"), ("before-run", "after.npy")]


@pytest.mark.parametrize("names", NAMES)
def test_runs_and_vectors_give_the_same_tests(names: tuple[str, str], gated: Command) -> None:
    result = gated("compare", *names, "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert (document["before"], document["after"], document["gates"]) == (names[0], [names[1]], [])
    found = _tests(document)
    expected = _measure_shift(np.load("before.npy"), np.load("after.npy"))
    assert found["mean_shift"]["effect"] == pytest.approx(expected, rel=1e-3)
    assert found["mean_shift"]["low"] < expected < found["mean_shift"]["high"]
    assert found["mean_shift"]["p"] == pytest.approx(1 / 200)
    assert found["mean_shift"]["significant"] is True
    assert found["covariance"]["significant"] is False
    assert found["neighbour_overlap"]["effect"] is None
    assert "same items" in found["neighbour_overlap"]["reason"]
    assert {(r["run"], r["layer"], r["n_before"], r["n_after"]) for r in found.values()} == {(names[1], 0, 300, 250)}
    changes = {c["measure"]: c for c in document["changes"]}
    assert changes["mean_cosine"]["difference"] > 0.2
    assert sorted(path.name for path in Path.cwd().iterdir() if "isotrope" in path.name) == []


def test_gates_fail_and_pass(gated: Command) -> None:
    gates = ["mean_shift.p < 0.01", "change.mean_cosine > 0.9", "now.mean_cosine > 0.3", "neighbourhoods.effect > 0.9"]
    options = [word for gate in gates for word in ("--fail-on", gate)]
    result = gated("compare", "before.npy", "after.npy", *options, "--junit", "out/gates.xml")
    assert result.code == 1
    lines = result.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["gate tripped", "gate passed", "gate tripped", "gate passed"]
    assert lines[0] == "gate tripped: mean_shift.p is 0.005, below 0.01."
    root = ElementTree.parse("out/gates.xml").getroot()
    (suite,) = root
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["4", "2", "0"]
    assert [case.get("name") for case in suite] == gates
    assert [failure.get("message") for failure in suite.iter("failure")] == [lines[0], lines[2]]
    assert [path.name for path in Path("out").iterdir()] == ["gates.xml"]
    document = gated("compare", "before.npy", "after.npy", *options, "--json")
    assert document.code == 1
    assert [(g["gate"], g["failed"]) for g in document.json["gates"]] == list(
        zip(gates, [True, False, True, False], strict=True)
    )


def test_sets_that_are_alike_pass(gated: Command) -> None:
    result = gated("compare", "before.npy", "alike.npy", "--fail-on", "mean_shift.effect > 0.2")
    assert result.code == 0
    assert "gate passed: mean_shift.effect is 0" in result.err
    assert "The means do not differ beyond chance" in result.out


def test_a_measure_that_only_a_gate_needs_is_computed(gated: Command) -> None:
    result = gated("compare", "before.npy", "after.npy", "--measures", "isoscore", "--fail-on", "now.hubness > 100")
    assert result.code == 0
    assert re.match(r"gate passed: now\.hubness is [-\d.]+, not above 100\.", result.err)


def test_rows_that_were_added(gated: Command) -> None:
    result = gated("compare", "before.npy", "grown.npy", "--fail-on", "mean_shift.effect > 1")
    assert result.code == 1
    assert (
        "300 of 300 sampled items of both sets are unchanged; the 40 sampled rows that are new or changed" in result.out
    )
    result = gated("compare", "before.npy", "grown.npy", "--fail-on", "neighbour_overlap < 0.9", "--json")
    assert result.code == 0
    assert _tests(result.json)["neighbour_overlap"]["effect"] > 0.98


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("before.npy", "wide.npy", "--fail-on", "mean_shift.p < 0.1"), "width 6 and 7"),
        (
            ("before-run", "nothing-kept", "--fail-on", "mean_shift.p < 0.1"),
            "--keep none; scan again with --keep",
        ),
        (("before-run", "no-sample", "--fail-on", "covariance.p < 0.1"), "without --sample 0"),
        (("before-run", "after-run", "--fail-on", "now.hubness > 1"), "no reading of 'hubness'; scan with --measures"),
        (("before-run", "before-run", "--fail-on", "mean_shift.p < 0.1"), "compared with itself"),
        (("before-run", "./before-run/", "--fail-on", "mean_shift.p < 0.1"), "compared with itself"),
        (("before-run", "after-run", "--fail-on", "mean_shft.p < 0.1"), "of tests only"),
        (("before-run", "after-run", "--fail-on", "now.mean_cosin > 0.1"), "did you mean"),
        (("before-run", "after-run", "--fail-on", "mean_shift.p is small"), "cannot be read"),
        (("before-run", "after-run", "after.npy", "--fail-on", "mean_shift.p < 0.1"), "two runs, got 3"),
        (("before-run", "after-run", "--fail-on", "layer[4].change.mean_cosine > 0.1"), "layer 4"),
        (("before.npy", "missing.npy"), "missing.npy"),
        (("before-run", "after-run", "--junit", "out.xml"), "--fail-on"),
        (("before-run", "after-run", "--fail-on", "mean_cosine > 1", "--junit", "before-run"), "is a folder"),
        (("before-run", "after-run", "--seed", "-1"), "seed"),
    ],
)
def test_refusals(arguments: tuple[str, ...], words: str, gated: Command) -> None:
    assert words in one_sentence(gated("compare", *arguments))


def test_a_gate_that_cannot_be_decided_is_an_error_of_the_suite(gated: Command) -> None:
    gates = ("--fail-on", "mean_cosine > 0.99", "--fail-on", "now.hubness > 1")
    sentence = one_sentence(gated("compare", "before-run", "after-run", *gates, "--junit", "out.xml"))
    (suite,) = ElementTree.parse("out.xml").getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["2", "0", "1"]
    (error,) = suite.iter("error")
    assert (error.get("message") or "") in sentence


def test_without_a_gate_runs_that_cannot_be_tested_are_compared(gated: Command) -> None:
    result = gated("compare", "before-run", "nothing-kept")
    assert result.code == 0
    assert "No two-sample test: the run 'nothing-kept' holds no statistics" in result.out
    assert "mean_cosine" in result.out


def test_scan_writes_junit_too(gated: Command) -> None:
    gates = ("--fail-on", "mean_cosine > 0.5", "--fail-on", "isoscore < 0")
    result = gated("scan", "after.npy", "-o", "scanned", *gates, "--junit", "scan.xml")
    assert result.code == 1
    (suite,) = ElementTree.parse("scan.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("isotrope scan after.npy", "2", "1")
    assert "compares two runs" in one_sentence(gated("scan", "after.npy", "--fail-on", "change.mean_cosine > 0.5"))
    assert "--fail-on" in one_sentence(gated("scan", "after.npy", "--junit", "scan.xml"))


def test_the_page_has_the_tests(gated: Command) -> None:
    result = gated("compare", "before.npy", "after.npy", "--html", "page.html")
    assert result.code == 0
    page = Path("page.html").read_text("utf-8")
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)[0])
    (shift,) = data["shifts"]
    assert [record["test"] for record in shift["results"]] == ["mean_shift", "covariance", "neighbourhoods"]
    assert shift["results"][0]["text"].startswith("The means differ by 0.")
    assert "300 and 250 sampled rows" in shift["words"]
    assert [run["name"] for run in data["runs"]] == ["before.npy", "after.npy"]
