"""Machines of a cluster that are lost on the way: the same numbers, or a sentence, and never a run that hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.engines.ray import source as engine
from isotrope.errors import InputError

ray = pytest.importorskip("ray")

#: So wide that the statistics of a shard do not travel with the answer, but stay where they were made.
ROWS = np.random.default_rng(8).normal(size=(6000, 150)) + 1.0
OPTIONS: dict[str, Any] = {"vectors": ROWS, "sample": 300, "batch_size": 5, "measures": "moments"}


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """A cluster whose machines are processes here; the first has two CPUs."""
    from ray.cluster_utils import Cluster

    quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    head = {"num_cpus": 2, "object_store_memory": 150_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head | {"_system_config": quick})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def _added(machines: Any, **has: Any) -> Any:
    node = machines.add_node(object_store_memory=150_000_000, **has)
    machines.wait_for_nodes()
    return node


def _after(shards: int, act: Callable[[], object]) -> Callable[[str, float, float | None], None]:
    """A progress that acts when so many shards are read."""
    told = iter(range(10**6))

    def progress(what: str, *_: Any) -> None:
        if what.startswith("reading") and next(told) == shards:
            act()

    return progress


@pytest.fixture(scope="module")
def here() -> list[float]:
    return [reading.value for reading in isotrope.scan(**OPTIONS).readings]


def _scan_and_lose(machines: Any, *, replaced: bool) -> Any:
    """The findings of a scan during which a machine is lost, and replaced by another one if asked for."""
    other = _added(machines, num_cpus=2)
    fresh: list[Any] = []

    def lose() -> None:
        machines.remove_node(other, allow_graceful=False)
        if replaced:
            fresh.append(_added(machines, num_cpus=2))

    found = isotrope.scan(**OPTIONS, engine="ray", workers=4, progress=_after(20, lose))
    for node in fresh:
        machines.remove_node(node)
    return found


@pytest.mark.long
@pytest.mark.parametrize("replaced", [False, True])
def test_a_machine_is_lost(replaced: bool, machines: Any, here: list[float]) -> None:
    retried = 0
    for _ in range(4):  # the machine may hold no worker, or be lost between two shards: then nothing is read again
        found = _scan_and_lose(machines, replaced=replaced)
        assert found.counts["rows"] == len(ROWS)
        assert [reading.value for reading in found.readings] == pytest.approx(here, rel=1e-9, nan_ok=True)
        retried += found.counts["retried_shards"]
        if retried:
            break
    assert retried >= 1


@pytest.mark.long
def test_workers_that_find_no_place_are_told(machines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_LOOK", 0.5)
    monkeypatch.setattr(engine, "_PLACE", 3.0)
    kept, other = _added(machines, num_cpus=1, num_gpus=1), _added(machines, num_cpus=1, num_gpus=1)
    lose = _after(10, lambda: machines.remove_node(other, allow_graceful=False))
    with pytest.raises(InputError, match="machine of the cluster was lost and 1 of 2 workers find no place to run on"):
        isotrope.scan(**OPTIONS, engine="ray", workers=2, gpus_per_worker=1, progress=lose)
    machines.remove_node(kept)
