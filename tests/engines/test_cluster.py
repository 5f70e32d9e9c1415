"""Workers on a cluster: how many have room, where they are put, who counts as ready, and what an error becomes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isotrope.engines.ray.cluster import count_workers, place_workers, start_actors
from isotrope.engines.ray.source import Workers
from isotrope.errors import InputError, MissingExtra

ray = pytest.importorskip("ray")


def _cluster(*machines: dict[str, float]) -> Any:
    """A stand-in with such machines; one more is lost."""
    nodes = [{"NodeID": f"{i:056x}", "Alive": True, "Resources": has} for i, has in enumerate(machines)]
    lost = {"NodeID": "f" * 56, "Alive": False, "Resources": {"CPU": 64.0}}
    total = {name: sum(has.get(name, 0) for has in machines) for name in ("CPU", "GPU")}
    return SimpleNamespace(nodes=lambda: [lost, *nodes], cluster_resources=lambda: total)


@pytest.mark.parametrize(
    ("gpus", "room"), [(0.0, 12), (0.6, 3), (0.5, 6), (0.3, 9), (1, 3), (2, 1), (0.0001, 12)], ids=str
)
def test_how_many_have_room(gpus: float, room: int) -> None:
    there = _cluster({"CPU": 8.0, "GPU": 2.0}, {"CPU": 4.0, "GPU": 1.0})
    assert count_workers(there, None, gpus) == room
    with pytest.raises(InputError, match=f"room for {room} workers"):
        count_workers(there, room + 1, gpus)


def test_a_worker_for_each_cpu_in_turn_over_the_machines() -> None:
    found = place_workers(_cluster({"CPU": 1.0}, {"CPU": 3.0}, {"memory": 9.0}), 4)
    assert [int(place.node_id, 16) for place in found] == [0, 1, 1, 1]
    assert all(place.soft for place in found)


def test_a_missing_extra_survives_the_way_from_a_worker() -> None:
    error = MissingExtra("h5py", "files", "the format HDF5")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is MissingExtra
    assert str(again) == str(error)


@pytest.mark.parametrize("within", [True, False])
def test_an_error_of_rays_own_becomes_a_sentence(within: bool) -> None:
    lost = ray.exceptions.ObjectLostError("ab" * 28, None, "")
    error = ray.exceptions.RayTaskError("read", "traceback", lost) if within else lost

    def get(_: Any) -> None:
        raise error

    stand_in = SimpleNamespace(get=get, wait=lambda refs, **_: (refs, []), exceptions=ray.exceptions)
    with pytest.raises(InputError, match=r"lost a worker or what it had made 20 times over \(ObjectLostError"):
        Workers(stand_in, {}, [], skip=False).get("a reference")


def test_one_that_cannot_be_made_is_not_ready(cluster: None) -> None:
    class Worker:
        def __init__(self, fails: bool) -> None:
            if fails:
                raise ValueError("no model fits here")

        def ping(self) -> str:
            return "a life"

    remote = ray.remote(num_cpus=0)(Worker)
    good, bad = remote.remote(False), remote.remote(True)
    assert start_actors(ray, [bad, good]) == {good: "a life"}
    with pytest.raises(InputError, match=r"none of 1 workers could be started .* no model fits here; check"):
        start_actors(ray, [remote.remote(True)])


@pytest.mark.long
def test_a_cluster_that_was_started_is_found(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(500, 4)))
    # A folder of its own: the newest cluster in it is found, not those of other tests. Short, for the names of sockets.
    with tempfile.TemporaryDirectory(prefix="isotrope-", dir="/tmp") as folder:
        env = os.environ | {"RAY_TMPDIR": folder, "RAY_ADDRESS": "", "RAY_USAGE_STATS_ENABLED": "0"}
        start = ["start", "--head", "--block", "--port=0", "--num-cpus=3", "--include-dashboard=false"]
        start += ["--object-store-memory=100000000"]
        started = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *start], env=env, stdout=subprocess.PIPE, text=True
        )
        assert started.stdout is not None
        try:
            while "Ray runtime started" not in (line := started.stdout.readline()):
                assert line, "the cluster has ended"
            command = ["scan", "rows.npy", "--engine", "ray", "--address", "auto", "-o", "run", "--json"]
            found = subprocess.run(
                [sys.executable, "-m", "isotrope", *command], cwd=tmp_path, env=env, capture_output=True, text=True
            )
        finally:
            started.terminate()
            started.communicate()
    assert found.returncode == 0, found.stderr
    assert '"workers": 3' in (tmp_path / "run/findings.json").read_text()
