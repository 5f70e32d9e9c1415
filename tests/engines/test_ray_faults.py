"""What goes wrong on a cluster costs no number: workers and drivers that are killed, shards that cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

import isotrope
from isotrope.engines.engine import Engine
from isotrope.engines.ray import cluster
from isotrope.engines.ray import source as engine
from isotrope.errors import InputError
from isotrope.runs import checkpoints
from isotrope.runs.run import Run
from isotrope.sources.input import Input
from isotrope.statistics import Collection
from isotrope.storage.files import read_arrays

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("cluster")

ROWS = np.random.default_rng(8).normal(size=(9000, 12)) * np.arange(1, 13) + 4.0
OPTIONS: dict[str, Any] = {"sample": 700, "batch_size": 5, "engine": "ray"}


def _arrays(folder: Path) -> dict[str, Any]:
    return {f"{path.name}/{k}": v for *_, path in Run(folder).statistics() for k, v in read_arrays(path).items()}


def _identical(one: Path, other: Path) -> None:
    """Every statistic of two runs is the same, bit by bit."""
    here, there = _arrays(one), _arrays(other)
    assert here.keys() == there.keys()
    for key, array in here.items():
        np.testing.assert_array_equal(array, there[key], err_msg=key)


@pytest.fixture(scope="module")
def whole(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run by two workers."""
    folder = tmp_path_factory.mktemp("whole")
    np.save(folder / "rows.npy", ROWS)
    found = isotrope.scan(vectors=folder / "rows.npy", **OPTIONS, workers=2, output=folder / "run")
    assert found.counts["retried_shards"] == 0
    return folder


def _processes(kind: str) -> list[psutil.Process]:
    """Those of this Ray, not of one that runs beside."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.cmdline()[:1] and child.cmdline()[0].startswith(f"ray::{kind}")]


@pytest.mark.long
def test_workers_killed_again_and_again(whole: Path, tmp_path: Path) -> None:
    done: list[int] = []

    def kill(what: str, units: float, total: float | None) -> None:
        if what.startswith("reading"):
            done.append(int(units))
            if len(done) in (5, 15, 30, 45):
                for process in [*_processes("Replica")[: 1 + len(done) // 30], *_processes("Merger")]:
                    process.kill()

    found = isotrope.scan(vectors=whole / "rows.npy", **OPTIONS, workers=2, output=tmp_path / "run", progress=kill)
    assert done[-1] == len(ROWS)
    assert len(done) == 57
    assert 1 <= found.counts["retried_shards"] <= 6
    assert found.provenance["engine"]["retried_shards"] == found.counts["retried_shards"]
    _identical(whole / "run", tmp_path / "run")


@pytest.mark.long
def test_what_kills_every_worker_does_not_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TRIES", 1)
    with Engine(engine="ray", workers=1).open(Input(vectors=ROWS)) as source, pytest.raises(InputError) as refused:
        next(source.map(lambda _: os.kill(os.getpid(), signal.SIGKILL)))
    assert "the cluster lost a worker" in str(refused.value)
    assert "smaller --batch-size" in str(refused.value)


#: A scan whose process kills itself when it has written its second checkpoint.
KILLED = """
import os, signal, sys
from isotrope.runs import checkpoints
import isotrope

written = checkpoints.save_checkpoint
kept = []

def keep(*arguments):
    written(*arguments)
    kept.append(1)
    if len(kept) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.save_checkpoint = keep
isotrope.scan(vectors=sys.argv[1], sample=700, batch_size=5, engine="ray", workers=2, address=sys.argv[2],
              output="run", checkpoint_every=0)
"""


@pytest.mark.long
def test_driver_killed_and_resumed_by_another_number_of_workers(whole: Path, tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", KILLED, str(whole / "rows.npy"), address]
    killed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (state,) = (tmp_path / "run").glob("checkpoint/*/state.json")
    assert json.loads(state.read_text())["shards"] == 32
    options: dict[str, Any] = {"vectors": whole / "rows.npy", **OPTIONS, "output": tmp_path / "run", "resume": True}
    with pytest.raises(isotrope.IsotropeError, match="begun with other engine"):
        isotrope.scan(**options | {"engine": "local"})
    told: list[float] = []
    found = isotrope.scan(**options, workers=1, progress=lambda what, done, total: told.append(done))
    assert told[0] > 32 * 160 - 1  # from where the other stopped
    assert found.provenance["resumed_at_batch"] == 32 * 32
    assert found.counts["rows"] == len(ROWS)
    _identical(whole / "run", tmp_path / "run")


@pytest.mark.long
def test_this_process_holds_one_whole_at_a_time(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Any] = []
    wholes: list[int] = []
    get, resumed = engine.Workers.get, checkpoints.load_checkpoint

    def hold(found: Any) -> Any:
        if isinstance(found, Collection):
            held[:] = map(weakref.ref, found.summaries.values())
            wholes.append(found.shards)
        return found

    def get_one(workers: engine.Workers, reference: Any) -> Any:
        assert not [one for one in held if one() is not None]
        return hold(get(workers, reference))

    def stop(what: str, done: float, total: float | None) -> None:
        if done > 35 * 160:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"vectors": whole / "rows.npy", **OPTIONS, "workers": 2, "checkpoint_every": 0}
    monkeypatch.setattr(engine.Workers, "get", get_one)
    with pytest.raises(KeyboardInterrupt):
        isotrope.scan(**options, output=tmp_path / "run", progress=stop)
    held.clear()  # what a traceback holds
    monkeypatch.setattr(checkpoints, "load_checkpoint", lambda *given: hold(resumed(*given)))
    isotrope.scan(**options, output=tmp_path / "run", resume=True)
    assert wholes == [16, 32, 32, 48, 57]
    _identical(whole / "run", tmp_path / "run")


def _data_set(folder: Path) -> None:
    """Three files of 1,200 rows, 15 shards each; the second has no vector in row 130."""
    folder.mkdir()
    for i in range(3):
        rows: list[Any] = list(ROWS[1200 * i : 1200 * i + 1200])
        if i == 1:
            rows[130] = None
        pd.DataFrame({"x": rows}).to_parquet(folder / f"{i}.parquet")


@pytest.mark.long
def test_a_shard_that_cannot_be_read(tmp_path: Path) -> None:
    _data_set(tmp_path / "set")
    with pytest.raises(InputError, match=r"shard 16 \(rows 1,280 to 1,359\) cannot be read: row 130 of .*1\.parquet"):
        isotrope.scan(vectors=tmp_path / "set", **OPTIONS, workers=2)
    found = isotrope.scan(vectors=tmp_path / "set", **OPTIONS, workers=2, bad_files="skip", output=tmp_path / "run")
    (name, reason) = next(iter(found.provenance["engine"]["skipped_shards"].items()))
    assert name == "shard 16 (rows 1,280 to 1,359)"
    assert "1.parquet" in reason
    assert (found.counts["rows"], found.counts["skipped_shards"]) == (3520, 1)
    without = isotrope.scan(vectors=np.delete(ROWS[:3600], slice(1280, 1360), axis=0), sample=700)
    assert found.get("mean_cosine").value == pytest.approx(without.get("mean_cosine").value, rel=1e-9)


@pytest.mark.long
def test_a_shard_that_cannot_be_read_on_the_command_line(tmp_path: Path) -> None:
    _data_set(tmp_path / "set")
    where = ["--engine", "ray", "--workers", "2", "--address", ray.get_runtime_context().gcs_address]
    for command in (["scan"], ["repair", "fit", "--with", "whitening"]):
        found = subprocess.run(
            [sys.executable, "-m", "isotrope", *command, "set", "--batch-size", "5", "-o", "out", *where],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (found.returncode, found.stdout) == (2, "")
        assert "shard 16 (rows 1,280 to 1,359) cannot be read: row 130" in found.stderr
        assert "Traceback" not in found.stderr
        assert not [path for path in tmp_path.rglob("out/**/*") if path.is_file()]


@pytest.mark.long
def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    _data_set(tmp_path / "set")
    (tmp_path / "set/1.parquet").write_bytes((tmp_path / "set/0.parquet").read_bytes()[:-20])
    with pytest.raises(InputError, match=r"1\.parquet"):
        isotrope.scan(vectors=tmp_path / "set", **OPTIONS, workers=2)
    found = isotrope.scan(vectors=tmp_path / "set", **OPTIONS, workers=2, bad_files="skip")
    assert [Path(path).name for path in found.source["left_out"]] == ["1.parquet"]
    assert found.counts["rows"] == 2400


def test_what_is_asked_of_the_wrong_engine() -> None:
    with pytest.raises(InputError, match="engine local has no use for --workers"):
        isotrope.scan(vectors=ROWS, workers=2)
    with pytest.raises(InputError, match="no engine 'spark'"):
        isotrope.scan(vectors=ROWS, engine="spark")
    with pytest.raises(InputError, match=r"room for 8 workers \(8 CPUs\), got 9"):
        isotrope.scan(vectors=ROWS, engine="ray", workers=9)
    with pytest.raises(InputError, match="room for 0 workers"):
        isotrope.scan(vectors=ROWS, engine="ray", gpus_per_worker=0.5)
    with pytest.raises(InputError, match="standard input"):
        isotrope.scan(text="-", engine="ray", workers=1)


@pytest.mark.long
def test_a_ray_of_its_own_that_is_told_to_stop(whole: Path, tmp_path: Path) -> None:
    command = ["scan", str(whole / "rows.npy"), "--sample", "700", "--batch-size", "5", "--engine", "ray"]
    process = subprocess.Popen(
        [sys.executable, "-m", "isotrope", *command, "--workers", "1", "-o", "run", "--checkpoint-every", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"RAY_ADDRESS": ""},
    )
    while process.poll() is None and not list(tmp_path.glob("run/checkpoint/*/state.json")):
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    out, said = process.communicate()
    assert (process.returncode, out) == (143, "")
    assert said == "isotrope: stopped; continue with the same command and -o run --resume.\n"
    assert children
    assert not psutil.wait_procs(children, timeout=60)[1]
    found = isotrope.scan(vectors=whole / "rows.npy", **OPTIONS, workers=2, output=tmp_path / "run", resume=True)
    assert found.provenance["resumed_at_batch"] >= 16 * 32
    _identical(whole / "run", tmp_path / "run")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at '127.0.0.1:1'"),
        pytest.param("ray://127.0.0.1:1", "no Ray cluster answers at 'ray://127.0.0.1:1'", marks=pytest.mark.long),
        pytest.param("nonsense", "the address 'nonsense' is none of a Ray cluster", marks=pytest.mark.long),
    ],
)
def test_a_cluster_that_is_not_there(address: str, said: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    command = ["scan", "rows.npy", "--engine", "ray", "--address", address, "-o", "run"]
    found = subprocess.run(
        [sys.executable, "-m", "isotrope", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"RAY_ADDRESS": ""},
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert said in found.stderr
    assert not (tmp_path / "run").exists()
