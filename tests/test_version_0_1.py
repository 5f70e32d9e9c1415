"""Runs, checkpoints and repairs that version 0.1 wrote are still read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isotrope
from goldens.plain import find_differences, to_plain
from isotrope import Run, TokenStatistics, load_repair
from isotrope.cli.main import app
from isotrope.repairs import Whitening, saved_moments, saved_summary
from isotrope.runs import checkpoints
from isotrope.statistics import Wanted

WRITTEN = Path(__file__).parent / "data/version_0_1"

#: What version 0.1 answered.
EXPECTED: dict[str, Any] = json.loads((WRITTEN / "expected.json").read_text("utf-8"))

#: The scans that were stopped, by their run folder.
STOPPED: dict[str, dict[str, Any]] = {
    "stopped_rows": {"vectors": "rows.npy", "measures": "moments,spread", "batch_size": 300, "sample": 200},
    "stopped_groups": {
        "vectors": "grouped.parquet",
        "column": "vector",
        "group_by": "topic",
        "measures": "moments",
        "batch_size": 100,
        "sample": 50,
    },
}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(WRITTEN, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


def _command(*arguments: str) -> None:
    assert not app(list(arguments), standalone_mode=False)


def test_statistics(old: Path) -> None:
    summary = saved_summary(old / "run", 1)
    assert summary.moments.n == summary.sequences.rows  # type: ignore[union-attr]
    assert isinstance(summary.tokens, TokenStatistics)
    assert summary.sample is not None
    assert summary.sample.values.dtype == np.float32
    by_types = np.einsum("i,ij->j", summary.tokens.n, summary.tokens.means_of(summary.tokens.types)) / summary.moments.n
    assert_allclose(by_types, summary.moments.mean, rtol=1e-6)


def test_commands(old: Path) -> None:
    _command("report", "run")
    assert (old / "run/report.html").stat().st_size > 100_000
    _command("compare", "run", "run", "--html", "compared.html")
    assert (old / "compared.html").exists()
    _command("repair", "fit", "run", "--with", "whitening", "-o", "fitted")
    again = load_repair(old / "fitted").transform(np.eye(4))
    assert_allclose(again, Whitening().fit_moments(saved_moments(old / "run", 1)).transform(np.eye(4)), rtol=1e-12)
    _command("repair", "fit", "run", "--with", "clusters", "--clusters", "2", "-o", "by_clusters")
    _command("repair", "show", "fitted", "run", "--json")


def test_a_figure_of_sampled_rows(old: Path) -> None:
    pytest.importorskip("matplotlib")
    _command("figure", "run", "pca", "-o", "pca.svg")


def test_repairs(old: Path) -> None:
    for name in ("whitening", "clusters"):
        assert load_repair(old / name).transform(np.ones((2, 4))).shape == (2, 4)


def test_a_checkpoint(old: Path) -> None:
    wanted = Wanted(tokens=True, sequences=True, sample=80)
    collection = checkpoints.load_checkpoint(Run(old / "stopped").checkpoints, {"source": {}, "settings": {}}, wanted)
    assert (collection.batches, collection.counts["texts"]) == (1, 24)
    assert collection.layer(1).moments.n == saved_moments(old / "run", 1).n


def test_findings(old: Path) -> None:
    written = json.loads((old / "run/findings.json").read_text("utf-8"))
    found = json.loads(Run(old / "run").findings().to_json())
    assert {key: found[key] for key in written} == written


@pytest.mark.parametrize("name", EXPECTED["repairs"])
def test_every_kind_of_repair_gives_the_same_rows(name: str, old: Path) -> None:
    load = isotrope.Affine.load if name == "affine" else load_repair
    repair: Any = load(old / "repairs" / name)
    rows = np.load("rows.npy")[:4].astype(np.float64)
    expected = EXPECTED["repairs"][name]
    repaired = repair(rows) if name == "affine" else repair.transform(rows)
    # A flow computes in float32.
    assert_allclose(repaired, expected["rows"], rtol=1e-5 if name == "flow" else 1e-12, atol=1e-12)
    if expected["back"] is not None:
        assert_allclose(repair.inverse_transform(repaired), expected["back"], rtol=1e-5 if name == "flow" else 1e-11)


def test_every_kind_of_repair_is_there() -> None:
    kinds = {json.loads(path.read_text("utf-8")).get("repair") for path in WRITTEN.glob("repairs/*/config.json")}
    assert kinds >= {"softdecay", "whitening", "all-but-the-top", "centering", "clusters", "flow"}


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_scan_is_resumed(name: str, old: Path) -> None:
    resumed = isotrope.scan(**STOPPED[name], output=name, resume=True)
    assert resumed.provenance["resumed_at_batch"] == 2
    fresh = isotrope.scan(**STOPPED[name])
    for found in (fresh, resumed):  # lengths of rows and equal rows, of which 0.1 kept nothing
        found.readings = [r for r in found.readings if r.measure != "norm_variation"]
        found.counts.pop("duplicate_rows", None)
    assert not find_differences(to_plain(fresh), to_plain(resumed), 1e-12)
    by_key = {(r.layer, r.measure, r.group): r for r in resumed.readings if r.measure != "participation_ratio"}
    expected = {(r["layer"], r["measure"], r["group"]): r for r in EXPECTED[name] if r["value"] is not None}
    assert by_key.keys() == expected.keys()
    for key, before in expected.items():
        assert by_key[key].n == before["n"]
        assert by_key[key].value == pytest.approx(before["value"], rel=1e-12), key


def test_a_stopped_scan_of_other_rows_is_not(old: Path) -> None:
    np.save("rows.npy", np.load("rows.npy") + 1)
    with pytest.raises(isotrope.IsotropeError, match="was begun with other files"):
        isotrope.scan(**STOPPED["stopped_rows"], output="stopped_rows", resume=True)
