"""Runs, checkpoints and repairs that version 0.1 wrote are still read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isotrope import load_repair
from isotrope.cli.main import app
from isotrope.repairs import Whitening, saved_moments, saved_summary
from isotrope.runs import checkpoint as checkpoints
from isotrope.runs.run import Run
from isotrope.statistics import TokenStatistics, Wanted

WRITTEN = Path(__file__).parent / "data/version_0_1"


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
    collection = checkpoints.load_checkpoint(Run(old / "stopped"), {"source": {}, "settings": {}}, wanted)
    assert (collection.batches, collection.counts["texts"]) == (1, 24)
    assert collection.layer(1).moments.n == saved_moments(old / "run", 1).n
