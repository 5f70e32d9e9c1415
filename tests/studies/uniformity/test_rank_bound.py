"""The theorem's bound against a projection by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.sources.batch import Rows
from isotrope.statistics import Sample, prepare_rows
from isotrope.studies.uniformity.rank_bound import compute_rank_bound


def test_distances_are_those_to_the_projection() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 6)) @ np.diag([9.0, 4, 2, 1, 0.5, 0.2])
    sample = Sample.empty(6, 100)
    sample.add(prepare_rows(rows, Rows(np.repeat(np.arange(2, dtype=np.uint64), 10))))
    found = {row["directions"]: row for row in compute_rank_bound(sample)}
    distances, bounds = [], []
    for part in (rows[:10], rows[10:]):
        values, vectors = np.linalg.eigh(part.T @ part)
        top = vectors[:, -1:]
        distances.append(np.linalg.norm(part - part @ top @ top.T, axis=1).max())
        bounds.append(np.sqrt(values[-2]))
    assert found["1"]["distance"] == pytest.approx(np.mean(distances))
    assert found["1"]["bound"] == pytest.approx(np.mean(bounds))
    assert found["1"]["tightest"] == pytest.approx(np.max(np.array(distances) / bounds))
    assert all(0 < row["tightest"] <= 1 for row in found.values())
    assert {row["sequences"] for row in found.values()} == {2}


def test_one_row_off_a_line_meets_the_bound() -> None:
    rows = np.zeros((4, 3))
    rows[:3, 0] = 5.0
    rows[3, 1] = 1.0
    sample = Sample.empty(3, 100)
    sample.add(prepare_rows(rows, Rows(np.zeros(4, np.uint64))))
    assert compute_rank_bound(sample)[0]["tightest"] == pytest.approx(1.0)
