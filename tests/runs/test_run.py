"""A run folder is whole or not there, whatever stops the writing."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isotrope.storage.files as atomic
from isotrope.errors import StoreError
from isotrope.findings import Findings, Reading
from isotrope.runs.retention import StatisticFiles
from isotrope.runs.run import Run
from isotrope.storage.files import read_arrays, write_arrays, write_frame, write_text
from isotrope.storage.row_files import write_rows

FINDINGS = Findings([Reading(0, "isoscore", 0.5)], layers=[0], tables={"spectra": pd.DataFrame({"x": [1.0, 2.0]})})
ARRAYS = {"layer_0": {"mean": np.arange(3.0), "facts": np.array([1, 2])}}
INDEX = {"layer_0": (None, 0)}
WRITTEN = ["findings.json", "readings.csv", "readings.parquet", "statistics", "tables"]


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_save_and_read(tmp_path: Path) -> None:
    run = Run(tmp_path / "deep" / "run")
    run.prepare(resume=False)
    assert not (tmp_path / "deep").exists()
    run.save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert _names(run.folder) == WRITTEN
    again = run.findings()
    assert again.to_json() == FINDINGS.to_json()
    assert again.tables["spectra"].equals(FINDINGS.tables["spectra"])
    assert json.loads((run.folder / "statistics/index.json").read_text())["files"] == {"layer_0": [None, 0]}
    np.testing.assert_array_equal(read_arrays(run.folder / "statistics/layer_0.safetensors")["mean"], np.arange(3.0))


def test_arrays_are_read_writable(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.safetensors", {"x": np.eye(3)[:, ::2], "empty": np.empty((0, 4), np.float32)})
    arrays = read_arrays(tmp_path / "a.safetensors")
    arrays["x"] += 1
    assert arrays["empty"].shape == (0, 4)


def _full(count: int, monkeypatch: pytest.MonkeyPatch, number: int = errno.ENOSPC) -> None:
    """Let the disk be full from the write number `count` on."""
    real, seen = atomic.write_atomically, []

    def write(path: Path, fill: Callable[[Path], object]) -> None:
        seen.append(path)

        def failing(beside: Path) -> None:
            beside.write_bytes(b"half")
            raise OSError(number, "No space left on device")

        real(path, failing if len(seen) > count else fill)

    monkeypatch.setattr(atomic, "write_atomically", write)


@pytest.mark.parametrize("count", range(6))
def test_a_full_disk_leaves_nothing(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _full(count, monkeypatch)
    with pytest.raises(StoreError, match="the disk is full"):
        Run(tmp_path / "run").save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path / "run")
    run.checkpoints.write({"batches": 3}, ARRAYS)
    _full(1, monkeypatch)
    with pytest.raises(StoreError, match="the disk is full"):
        run.checkpoints.write({"batches": 6}, ARRAYS)
    with pytest.raises(StoreError, match="the disk is full"):
        run.save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert _names(run.folder) == ["checkpoint"]
    found = run.checkpoints.read_last()
    assert found is not None
    assert found[0]["batches"] == 3


def test_a_first_checkpoint_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _full(0, monkeypatch)
    with pytest.raises(StoreError, match="the disk is full"):
        Run(tmp_path / "run").checkpoints.write({"batches": 3}, ARRAYS)
    assert list(tmp_path.iterdir()) == []


def test_other_trouble_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _full(0, monkeypatch, errno.EIO)
    with pytest.raises(StoreError, match="could not be written"):
        write_text(tmp_path / "a.txt", "text")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_what_was_there(stop: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "before")

    def fill(beside: Path) -> None:
        beside.write_bytes(b"half")
        raise stop

    with pytest.raises(stop):
        atomic.write_atomically(path, fill)
    assert path.read_text() == "before"
    assert _names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_folder_that_is_replaced_is_the_old_or_the_new_one(
    stop: type[BaseException], moved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its two moves are done when it is stopped."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/text").write_text("old")
    real, left = Path.replace, [moved]

    def replace(path: Path, target: Path) -> Path:
        if left[0] < 0:  # putting back
            return real(path, target)
        left[0] -= 1
        if left[0] == 0:
            real(path, target)
        if left[0] <= 0:
            left[0] = -1
            raise stop
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises((stop, StoreError)):
        atomic.write_folder(tmp_path / "a", lambda beside: (beside / "text").write_text("new"))
    assert (tmp_path / "a/text").read_text() == ("new" if moved == 2 else "old")
    assert _names(tmp_path) == ["a"]


def test_a_file_that_is_there_by_then_is_not_written_over(tmp_path: Path) -> None:
    def pieces() -> Iterator[np.ndarray]:
        yield np.ones((2, 3))
        (tmp_path / "a.npy").write_text("mine")

    with pytest.raises(StoreError, match="never written over"):
        write_rows(tmp_path / "a.npy", pieces())
    assert (tmp_path / "a.npy").read_text() == "mine"
    assert _names(tmp_path) == ["a.npy"]


def test_folders_are_brought_to_the_disk_before_older_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a power cut would have it: what is removed is removed after what takes its place is sure to stay."""
    run, done = Run(tmp_path / "run"), []
    run.checkpoints.write({"batches": 1}, ARRAYS)
    synced, removed = os.fsync, shutil.rmtree

    def sync(number: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{number}"))
        synced(number)

    def remove(path: Path, **options: bool) -> None:
        done.append(f"removed {path}")
        removed(path, **options)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(shutil, "rmtree", remove)
    base = run.folder / "checkpoint"
    run.checkpoints.write({"batches": 2}, ARRAYS)
    before = done[: done.index(f"removed {base / '00000001'}")]
    assert {str(place) for place in (base / "00000002", base, run.folder, tmp_path)} <= set(before)
    done.clear()
    run.save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert str(run.folder) in done[: done.index(f"removed {base / '00000002'}")]


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    run = Run(tmp_path)
    run.prepare(resume=False)
    run.save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert _names(tmp_path) == sorted([*WRITTEN, "notes.txt"])


def test_checkpoints_replace_each_other(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    assert run.checkpoints.read_last() is None
    for batches in (1, 2, 3):
        run.checkpoints.write({"batches": batches}, ARRAYS)
    assert _names(run.folder / "checkpoint") == ["00000003"]
    found = run.checkpoints.read_last()
    assert found is not None
    state, arrays = found
    assert state["batches"] == 3
    np.testing.assert_array_equal(arrays["layer_0"]["mean"], np.arange(3.0))
    with pytest.raises(StoreError, match="already holds a run"):
        run.prepare(resume=False)
    run.prepare(resume=True)
    with pytest.raises(StoreError, match="--resume"):
        run.findings()
    run.save(FINDINGS, StatisticFiles(ARRAYS, INDEX))
    assert _names(run.folder) == WRITTEN


def test_a_checkpoint_without_its_state_never_happened(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.checkpoints.write({"batches": 1}, ARRAYS)
    half = run.folder / "checkpoint/00000002"
    half.mkdir()
    (half / ".layer_0.safetensors.99.part").write_bytes(b"half")
    found = run.checkpoints.read_last()
    assert found is not None
    assert found[0]["batches"] == 1
    run.checkpoints.write({"batches": 5}, ARRAYS)
    assert _names(run.folder / "checkpoint") == ["00000003"]


@pytest.mark.parametrize("name", ["layer_0.safetensors", "state.json"])
def test_a_flipped_byte_is_found_and_named(name: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.checkpoints.write({"batches": 1}, ARRAYS)
    path = run.folder / "checkpoint/00000001" / name
    data = bytearray(path.read_bytes())
    data[0 if name == "state.json" else -1] ^= 0x10
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match=name) as refused:
        run.checkpoints.read_last()
    assert "00000001' to begin anew" in str(refused.value)


def test_a_missing_checkpoint_file_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.checkpoints.write({"batches": 1}, ARRAYS)
    (run.folder / "checkpoint/00000001/layer_0.safetensors").unlink()
    with pytest.raises(StoreError, match="layer_0"):
        run.checkpoints.read_last()


def test_a_checkpoint_of_a_newer_format(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.checkpoints.write({"batches": 1}, ARRAYS)
    path = run.folder / "checkpoint/00000001/state.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 9'))
    with pytest.raises(StoreError, match="format 9"):
        run.checkpoints.read_last()


def test_arrays_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, {"x": np.eye(9)})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(StoreError, match="damaged or cut short"):
        read_arrays(path)


def test_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    write_frame(tmp_path / "f.csv", frame)
    write_frame(tmp_path / "f.parquet", frame)
    assert pd.read_csv(tmp_path / "f.csv")["a"].tolist() == [1, 2]
    assert pd.read_parquet(tmp_path / "f.parquet")["a"].tolist() == [1, 2]
