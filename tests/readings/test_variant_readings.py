"""Readings by the published definitions beside the usual ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isotrope
from isotrope.cli.main import app
from isotrope.errors import InputError

ROWS = np.random.default_rng(0).normal(size=(300, 6)) + 0.5


def mean_of_all_cosines(rows: np.ndarray) -> float:
    """Over all pairs, each row with itself too: the authors' own code (Yan et al. 2022)."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float((unit @ unit.T).mean())


def test_a_scan_reads_both_definitions() -> None:
    findings = isotrope.scan(vectors=ROWS, measures="mean_cosine,token_uniformity", variant="published")
    assert [(r.measure, r.variant) for r in findings.readings] == [
        ("mean_cosine", "definition"),
        ("token_uniformity", "definition"),
        ("token_uniformity", "published"),
    ]
    n, with_itself = len(ROWS), mean_of_all_cosines(ROWS)
    usual, published = (findings.get("token_uniformity", variant=name) for name in ("definition", "published"))
    assert published.value == pytest.approx(with_itself, rel=1e-12)
    assert usual.value == pytest.approx((n * with_itself - 1) / (n - 1), rel=1e-12)
    assert 0 < published.null < 3 / n  # a draw of isotropic rows, for which 1/n is expected: each with itself
    assert published.low < published.high
    assert findings.verdict == isotrope.scan(vectors=ROWS, measures="mean_cosine,token_uniformity").verdict


def test_measure_takes_the_published_definition_where_there_is_one() -> None:
    found = isotrope.measure(ROWS, ["mean_cosine", "token_uniformity"], variant="published")
    assert found["token_uniformity"] == pytest.approx(mean_of_all_cosines(ROWS), rel=1e-12)
    assert found["mean_cosine"] == isotrope.measure(ROWS, "mean_cosine")["mean_cosine"]


def test_a_variant_that_no_measure_has_is_refused() -> None:
    with pytest.raises(InputError, match="there is no variant 'printed' of any measure; expected one of: definition"):
        isotrope.scan(vectors=ROWS, variant="printed")
    with pytest.raises(InputError, match="none of the selected measures has a variant 'published'"):
        isotrope.measure(ROWS, "mean_cosine", variant="published")


def test_the_command_saves_both_and_shows_both(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    given = ["scan", str(tmp_path / "rows.npy"), "--measures", "mean_cosine,token_uniformity"]
    done = CliRunner().invoke(app, [*given, "--variant", "published", "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "definition" in done.output
    assert "published" in done.output
    saved = json.loads((tmp_path / "run/findings.json").read_text())["readings"]
    assert [r["variant"] for r in saved] == ["definition", "definition", "published"]
    again = isotrope.Run(tmp_path / "run").findings().get("token_uniformity", variant="published")
    assert again.value == pytest.approx(mean_of_all_cosines(ROWS), rel=1e-9)
    other = CliRunner().invoke(app, [*given, "--resume", "-o", str(tmp_path / "run")])
    assert "was begun with other measures" in str(other.exception)
