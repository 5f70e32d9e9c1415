"""The page on limits computes what it says: bytes of real statistics, and the engine's own order of sums."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from isotrope.sources.batch import Rows
from isotrope.sources.input import Input
from isotrope.statistics import Collection, TokenStatistics, Wanted, prepare_rows
from testkit.ray_stand_in import StandIn


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    spec = spec_from_file_location("scale", Path(__file__).parents[1] / "docs/scale.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("d", [16, 100])
def test_bytes_are_those_of_real_statistics(d: int, scale: ModuleType) -> None:
    real = scale.summary(d, 500, sample=300)
    tokens = TokenStatistics.of(
        prepare_rows(np.ones((60, d), np.float32), Rows(np.arange(60, dtype=np.uint64), np.arange(60) % 20))
    )
    said = scale.bytes_of(d, sample=300)
    assert said["moments"] == scale.size(real.moments)
    assert said["sample"] == scale.size(real.sample) - real.sample.arrays()["facts"].nbytes
    assert scale.bytes_of(d, types=20)["tokens"] == scale.size(tokens)


@pytest.fixture(scope="module")
def cluster(scale: ModuleType) -> ModuleType:
    """The simulated one, which the page imports."""
    return sys.modules["simulated_ray"]


def _costs(cluster: ModuleType, shard: float = 1.0, sample: int = 0) -> Any:
    return cluster.Costs(shard, 8e-10, 2e-10, 3e-10, 10**8, 1_000.0, sample)


@pytest.mark.parametrize("workers", [4, 8])
def test_without_chance_the_simulation_is_the_closed_form(workers: int, cluster: ModuleType) -> None:
    """16 shards: the last four wait for two sums of four, one after the other, and for the way here."""
    costs = _costs(cluster)
    found = cluster.simulated(workers, 1_600, 100, costs, slow=0.0, fail=0.0)
    read = 16 / workers * (1.0 + 10**8 * costs.pack / 2)
    sums = 2 * costs.join(4 * 10**8, 10**8) if workers == 4 else 3 * costs.join(4 * 10**8, 10**8)
    assert found.after == pytest.approx(sums + 10**8 * (costs.send + costs.pack / 2))
    assert found.seconds == pytest.approx(read + found.after)
    assert (found.retried, found.merges, found.sent) == (0, 5, 20 * 10**8)


@pytest.mark.parametrize(("shards", "workers"), [(1, 2), (37, 3), pytest.param(1_100, 20, marks=pytest.mark.long)])
def test_the_simulation_adds_up_in_the_engines_order(
    shards: int, workers: int, cluster: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many sums of as many states as where real statistics are read and added up."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)
    rows = np.random.default_rng(0).normal(size=(shards * 64, 2))
    source = ray.workers(workers).open(Input(vectors=rows, batch_size=1))
    found = source.reduce(Collection(Wanted()))
    assert found.counts["rows"] == len(rows)
    said = cluster.simulated(workers, len(rows), source.shard_size, _costs(cluster))
    assert said.merges == ray.begun["merge"]
    assert said.sent == ray.taken["merge"] * 10**8


@pytest.mark.long
def test_what_is_lost_is_read_again(cluster: ModuleType) -> None:
    plain, some = (cluster.simulated(100, 500_000, 100, _costs(cluster), slow=0.0, fail=fail) for fail in (0.0, 0.05))
    assert plain.retried == 0
    assert 150 < some.retried < 400
    assert plain.seconds < some.seconds < plain.seconds + 0.05 * 50 + 3


@pytest.mark.long
def test_sums_keep_pace_with_many_workers(cluster: ModuleType) -> None:
    found = cluster.simulated(320, 800_000, 100, _costs(cluster, shard=4.0), slow=0.0, fail=0.0)
    assert found.seconds < 1.6 * 4.0 * 8_000 / 320  # twice that, where few sums for all are under way


def test_what_waits_is_bounded_by_the_workers_and_not_by_the_shards(cluster: ModuleType) -> None:
    few, many = (cluster.simulated(20, 100 * shards, 100, _costs(cluster)) for shards in (1_000, 8_000))
    assert many.states < 1.5 * few.states < 300
    assert many.store == pytest.approx(many.states * 10**8)
    full = cluster.simulated(20, 800_000, 100, _costs(cluster, sample=50))
    assert full.sent < 1.05 * many.sent  # once a full sample is known, hardly a row of others is sent


def test_the_tree_gives_what_a_line_gives(scale: ModuleType) -> None:
    difference, same = scale.merged_really(shards=200)
    assert difference < 1e-12
    assert same


@pytest.mark.long
def test_the_page_says_what_is_measured(scale: ModuleType) -> None:
    text = scale.page(scale.Rates(4e-9, 2e-11, 7e-10, 7e-10))
    for words in ("Measured on one core", "computed", "Simulated", "A billion vectors of 768", "80 layers of 8,192"):
        assert words in text
    assert "1,000" in text
