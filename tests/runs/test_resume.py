"""Stopped in the middle and resumed: the same numbers, and no more than one checkpoint interval done twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrope.errors import StoreError
from isotrope.scanner import scan

#: The command line, with a log of every batch, and where a signal is sent to itself.
CODE = """
import os, signal, sys
from isotrope.statistics import Collection
import isotrope.runs.run as store
where, at, number = sys.argv[1], int(sys.argv[2]), getattr(signal, sys.argv[3])
log = open("batches.log", "a", buffering=1)
update, replace = Collection.update, store.Path.replace

def counted(self, batch, *pool):
    update(self, batch, *pool)
    log.write(f"{self.batches}\\n")
    if where == "batch" and self.batches == at:
        os.kill(os.getpid(), number)

def replaced(self, target):
    # A checkpoint, or the run itself, is written up to here.
    if (where == "checkpoint" and target.name == "state.json" and f"{at:08d}" in str(target)) or (
        where == "saving" and target.name == "readings.csv"
    ):
        os.kill(os.getpid(), number)
    return replace(self, target)

Collection.update, store.Path.replace = counted, replaced
sys.argv = ["isotrope", *sys.argv[4:]]
from isotrope.cli.main import main
main()
"""


def _heeding() -> None:
    """Heed SIGINT, which a shell tells what it starts in the background to ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stopped(where: str, at: int, number: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE, where, str(at), number, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=_heeding)


def _batches(folder: Path) -> list[int]:
    """The numbers of the batches that were done, over all processes."""
    return [int(line) for line in (folder / "batches.log").read_text().split()]


def _document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "findings.json").read_text())
    return found


def _kept(run: Path) -> int:
    """How many batches the newest whole checkpoint holds."""
    states = sorted(run.glob("checkpoint/*/state.json"))
    return int(json.loads(states[-1].read_text())["batches"]) if states else 0


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rows = np.random.default_rng(5).normal(size=(6000, 12)) * np.arange(1, 13) + 2.0
    rows[17], rows[4000, 3] = 0.0, np.nan
    return rows


@pytest.fixture(scope="module")
def whole(rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run that nobody stopped finds."""
    folder = tmp_path_factory.mktemp("whole")
    np.save(folder / "rows.npy", rows)
    scan(vectors=folder / "rows.npy", sample=700, batch_size=100, output=folder / "run")
    return _document(folder / "run")


OPTIONS = ["--sample", "700", "--batch-size", "100", "-o", "run"]


@pytest.mark.parametrize(
    ("where", "at"), [pytest.param("batch", 37, marks=pytest.mark.long), ("checkpoint", 9), ("saving", 0)]
)
def test_killed_and_resumed(where: str, at: int, rows: np.ndarray, whole: dict[str, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows)
    # A checkpoint after every batch: an interval is one batch.
    command = ["scan", "rows.npy", *OPTIONS, "--checkpoint-every", "0"]
    killed = _stopped(where, at, "SIGKILL", *command, folder=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "run/findings.json").exists()
    done, kept = _batches(tmp_path), _kept(tmp_path / "run")
    assert done == list(range(1, len(done) + 1))
    assert 0 <= len(done) - kept <= 1
    resumed = _stopped("never", 0, "SIGKILL", *command, "--resume", folder=tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert _batches(tmp_path)[len(done) :] == list(range(kept + 1, 61))
    found = _document(tmp_path / "run")
    assert found["readings"] == whole["readings"]
    assert found["counts"] == whole["counts"]
    assert found["counts"].items() >= {"rows": 6000, "zero_rows": 1, "nonfinite_rows": 1}.items()
    assert found["verdict"] == whole["verdict"]
    assert found["provenance"]["resumed_at_batch"] == kept
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["findings.json", "readings.csv", "readings.parquet", "report.html", "statistics", "tables"]


@pytest.mark.long
def test_killed_from_outside_at_any_moment(rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.tile(rows, (10, 1)))
    command = ["scan", "rows.npy", "--sample", "700", "--batch-size", "20", "-o", "run", "--checkpoint-every", "0.2"]
    process = subprocess.Popen([sys.executable, "-c", CODE, "never", "0", "SIGKILL", *command], cwd=tmp_path)
    until = time.monotonic() + 60
    while not list((tmp_path / "run").glob("checkpoint/*2/state.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.wait()
    done, kept = len(_batches(tmp_path)), _kept(tmp_path / "run")
    assert 0 < kept <= done < 3000
    # Two intervals were kept, so one of them has about half as many batches; the machine may be busy meanwhile.
    assert done - kept <= kept
    assert _stopped("never", 0, "SIGKILL", *command, "--resume", folder=tmp_path).returncode == 0
    assert len(_batches(tmp_path)) == done + 3000 - kept
    whole = scan(vectors=tmp_path / "rows.npy", sample=700, batch_size=20)
    assert _document(tmp_path / "run")["readings"] == whole.to_dict()["readings"]


@pytest.mark.parametrize(
    ("number", "code", "where", "at"),
    [
        ("SIGINT", 130, "batch", 20),
        pytest.param("SIGINT", 130, "checkpoint", 3, marks=pytest.mark.long),
        pytest.param("SIGINT", 130, "saving", 0, marks=pytest.mark.long),
        pytest.param("SIGTERM", 143, "batch", 20, marks=pytest.mark.long),
        ("SIGTERM", 143, "saving", 0),
    ],
)
def test_stopped_politely(
    number: str,
    code: int,
    where: str,
    at: int,
    rows: np.ndarray,
    whole: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    np.save(tmp_path / "rows.npy", rows)
    command = ["scan", "rows.npy", *OPTIONS, "--checkpoint-every", "0"]
    stopped = _stopped(where, at, number, *command, folder=tmp_path)
    assert (stopped.returncode, stopped.stdout) == (code, "")
    assert stopped.stderr == "isotrope: stopped; continue with the same command and -o run --resume.\n"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint"]
    assert not list(tmp_path.rglob(".*"))
    monkeypatch.chdir(tmp_path)
    found = scan(vectors="rows.npy", sample=700, batch_size=100, output="run", resume=True)
    assert found.to_dict()["readings"] == whole["readings"]


def test_a_text_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    from testkit.models import save_model, texts

    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / "bert", "bert")
    Path("texts.txt").write_text("\n".join(texts(120)))
    command = ["scan", "--model", "bert", "--text", "texts.txt", "--batch-size", "8", "-o", "run"]
    killed = _stopped("batch", 9, "SIGKILL", *command, "--checkpoint-every", "0", folder=tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert 8 <= _kept(Path("run")) <= 9
    options: dict[str, Any] = {"model": "bert", "text": "texts.txt", "batch_size": 8}
    with pytest.raises(StoreError, match="begun with other layers"):
        scan(**options, output="run", resume=True, layers="0,1")
    found = scan(**options, output="run", resume=True).to_dict()
    assert found["provenance"]["resumed_at_batch"] == 8
    whole = scan(**options).to_dict()
    assert found["readings"] == whole["readings"]
    assert found["counts"] == whole["counts"]


def test_groups_are_restored(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = np.random.default_rng(6).choice(["ä", "b/c", "rare"], size=6000, p=[0.6, 0.395, 0.005])
    pd.DataFrame({"x": list(rows), "kind": kinds}).to_parquet(tmp_path / "rows.parquet")
    command = ["scan", "rows.parquet", "--column", "x", "--group-by", "kind", *OPTIONS, "--checkpoint-every", "0"]
    assert _stopped("batch", 31, "SIGKILL", *command, folder=tmp_path).returncode == -signal.SIGKILL
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"column": "x", "group_by": "kind", "sample": 700, "batch_size": 100}
    found = scan(vectors="rows.parquet", output="run", resume=True, **options).to_dict()
    assert found["provenance"]["resumed_at_batch"] == 30
    assert {r["group"] for r in found["readings"]} == {None, "ä", "b/c", "rare"}
    assert found["readings"] == scan(vectors="rows.parquet", **options).to_dict()["readings"]


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--batch-size", "200"], "batch_rows"),
        (["--sample", "800"], "sample"),
        (["--seed", "1"], "seed"),
        (["--measures", "isoscore"], "measures"),
        (["--precision", "fast"], "rows_dtype"),
    ],
)
def test_resume_with_other_options(option: list[str], named: str, rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows.astype(np.float32))
    keys = {"--batch-size": "batch_size", "--sample": "sample", "--seed": "seed"}
    options: dict[str, Any] = {"sample": 700, "batch_size": 100, "output": tmp_path / "run", "checkpoint_every": 0}
    _interrupted(tmp_path / "rows.npy", options)
    name, value = option
    changed = {keys.get(name, name.strip("-")): int(value) if name in keys else value}
    with pytest.raises(StoreError, match=f"begun with other {named}"):
        scan(vectors=tmp_path / "rows.npy", resume=True, **{**options, **changed})


def _interrupted(path: Path, options: dict[str, Any], after: int = 1500) -> None:
    """A scan that is stopped after so many rows."""

    def stop(what: str, done: int, total: int | None) -> None:
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(vectors=path, progress=stop, **options)


def test_an_input_that_changed(rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    options: dict[str, Any] = {"batch_size": 100, "output": tmp_path / "run", "checkpoint_every": 0}
    _interrupted(path, options)
    np.save(path, rows[::-1])
    with pytest.raises(StoreError, match="begun with other files"):
        scan(vectors=path, resume=True, **options)


def test_resume_where_nothing_was_kept_begins_anew(rows: np.ndarray, whole: dict[str, Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"sample": 700, "batch_size": 100, "output": tmp_path / "run"}
    np.save(tmp_path / "rows.npy", rows)
    _interrupted(tmp_path / "rows.npy", options)
    assert not (tmp_path / "run").exists()
    found = scan(vectors=tmp_path / "rows.npy", resume=True, **options)
    assert found.to_dict()["readings"] == whole["readings"]
    assert found.provenance["resumed_at_batch"] is None


def test_a_damaged_checkpoint_is_named(rows: np.ndarray, tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 100, "output": tmp_path / "run", "checkpoint_every": 0}
    np.save(tmp_path / "rows.npy", rows)
    _interrupted(tmp_path / "rows.npy", options)
    (path,) = (tmp_path / "run").glob("checkpoint/*/layer_0.safetensors")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match=r"layer_0\.safetensors' is damaged"):
        scan(vectors=tmp_path / "rows.npy", resume=True, **options)
