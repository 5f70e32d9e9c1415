"""Moments of what a repair is fitted on, and those that a scan has left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.repairs import Whitening, saved_moments
from isotrope.repairs.fit_data import collect

ROWS = np.random.default_rng(0).normal(size=(300, 5)) * [5, 4, 3, 2, 1] + 2


def test_moments_that_a_scan_saved_give_the_same_map(tmp_path: Path) -> None:
    isotrope.scan(vectors=ROWS, measures="mean_cosine", output=tmp_path / "run")
    fitted = Whitening().fit(saved_moments(tmp_path / "run"))
    assert_allclose(fitted.transform(ROWS), Whitening().fit_transform(ROWS), rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="has the layers 0, got 3; name one of them"):
        saved_moments(tmp_path / "run", 3)


def test_groups_of_a_run_are_put_together(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": list(ROWS), "kind": np.where(np.arange(300) % 3, "a", "b")})
    table.to_parquet(tmp_path / "x.parquet")
    isotrope.scan(
        vectors=tmp_path / "x.parquet", column="x", group_by="kind", measures="mean_cosine", output=tmp_path / "run"
    )
    found, expected = saved_moments(tmp_path / "run", 0), collect(ROWS).moments
    assert found.n == 300
    assert_allclose(found.scatter, expected.scatter, rtol=1e-10)


def test_what_is_no_run_or_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a finished run"):
        saved_moments(tmp_path)
    isotrope.scan(vectors=ROWS, measures="mean_cosine", output=tmp_path / "run")
    index = tmp_path / "run" / "statistics" / "index.json"
    index.write_text(index.read_text()[:-9])
    with pytest.raises(StoreError, match="is damaged"):
        saved_moments(tmp_path / "run")


def test_rows_in_memory_are_not_described_and_files_are(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    assert collect(ROWS).sources == []
    (described,) = collect(tmp_path / "x.npy").sources
    assert described["rows"] == 300


def test_unit_rows_count_what_was_left_out() -> None:
    with_zeros = np.vstack([ROWS, np.zeros((3, 5))])
    found = collect(with_zeros, of_unit_rows=True).moments
    assert (found.n, found.zero) == (300, 3)
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    assert_allclose(found.mean, unit.mean(axis=0), rtol=1e-10)
