"""The same numbers on a cluster as in this process, however many workers there are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.findings import Findings
from isotrope.statistics import Summary
from isotrope.store import Run, read_arrays

pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("cluster")


def _rows() -> np.ndarray:
    rows = np.random.default_rng(3).normal(size=(9000, 12)) * np.arange(1, 13) + 4.0
    rows[17], rows[4017, 3] = 0.0, np.nan
    return rows


def _apart(one: Findings, other: Findings) -> float:
    """The largest relative difference of two runs' readings, whose names must be the same."""
    assert [(r.layer, r.measure, r.group) for r in one.readings] == [
        (r.layer, r.measure, r.group) for r in other.readings
    ]
    apart = 0.0
    for a, b in zip(one.readings, other.readings, strict=True):
        assert math.isnan(a.value) == math.isnan(b.value), a.measure
        if not math.isnan(a.value):
            apart = max(apart, abs(a.value - b.value) / max(abs(a.value), 1e-12))
    return apart


def _saved(folder: Path) -> dict[str, Summary]:
    return {f"{g}/{k}": Summary.from_arrays(read_arrays(path)) for g, k, path in Run(folder).statistics()}


def _same_samples(one: Path, other: Path) -> None:
    here, there = _saved(one), _saved(other)
    assert here.keys() == there.keys()
    for key, summary in here.items():
        mine, theirs = summary.sample, there[key].sample
        assert mine is not None
        assert theirs is not None
        assert mine.sequences == theirs.sequences
        np.testing.assert_array_equal(mine.rows.sequence, theirs.rows.sequence)
        np.testing.assert_array_equal(mine.values, theirs.values)


@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(8, marks=pytest.mark.long)]
)
def test_vectors_by_any_number_of_workers(workers: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"vectors": _rows(), "sample": 700, "batch_size": 30}
    here = isotrope.scan(**options, output=tmp_path / "here")
    there = isotrope.scan(**options, output=tmp_path / "there", engine="ray", workers=workers)
    assert _apart(here, there) < 1e-9
    _same_samples(tmp_path / "here", tmp_path / "there")
    assert there.counts == here.counts | {"retried_shards": 0}
    told = there.provenance["engine"]
    assert (told["name"], told["workers"], told["retried_shards"]) == ("ray", workers, 0)
    assert here.provenance["engine"] == {"name": "local"}


def test_groups_of_a_parquet_data_set(tmp_path: Path) -> None:
    rows = _rows()
    kinds = np.random.default_rng(6).choice(["ä", "b/c", "rare"], size=len(rows), p=[0.6, 0.395, 0.005])
    folder = tmp_path / "set"
    folder.mkdir()
    for i in range(3):
        part = slice(3000 * i, 3000 * i + 3000)
        pd.DataFrame({"x": list(rows[part]), "kind": kinds[part]}).to_parquet(folder / f"{i}.parquet")
    options: dict[str, Any] = {"vectors": folder, "column": "x", "group_by": "kind", "sample": 300, "batch_size": 64}
    here = isotrope.scan(**options, output=tmp_path / "here")
    there = isotrope.scan(**options, output=tmp_path / "there", engine="ray", workers=2)
    assert _apart(here, there) < 1e-9
    _same_samples(tmp_path / "here", tmp_path / "there")
    assert here.source == there.source


def test_a_model_is_identical_with_the_same_batches(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from models import save_model, texts

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker has
    save_model(tmp_path / "bert", "bert")
    (tmp_path / "texts.txt").write_text("\n".join(texts(300)))
    options: dict[str, Any] = {"model": tmp_path / "bert", "text": tmp_path / "texts.txt", "sample": 500}
    try:
        here = isotrope.scan(**options, batch_size=4, output=tmp_path / "here")
        other = isotrope.scan(**options, batch_size=32, precision="exact")
    finally:
        torch.set_num_threads(threads)
    there = isotrope.scan(**options, batch_size=4, output=tmp_path / "there", engine="ray", workers=2)
    _same_samples(tmp_path / "here", tmp_path / "there")
    assert _apart(here, there) < 1e-9  # merged in another order, of the very same rows
    assert there.counts == here.counts | {"retried_shards": 0}
    assert _apart(other, there) < 1e-5
    pd.testing.assert_frame_equal(here.tables["tokens"], there.tables["tokens"], rtol=1e-9)
