"""A replica reads what the driver means: the same files, texts as they are, its input fetched once, on one thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.engines.ray.replica import Given, Replica, use_absolute_paths
from isotrope.engines.ray.source import _AHEAD, _HELD
from isotrope.errors import InputError
from isotrope.runs import checkpoints
from isotrope.runs.run import Run
from isotrope.sources.batch import Batch
from isotrope.sources.input import Input
from isotrope.sources.row_names import RowName
from isotrope.sources.vectors.unreadable_files import SKIP_UNOPENED
from isotrope.statistics import Collection, Wanted
from testkit.ray_stand_in import StandIn

ROWS = np.random.default_rng(8).normal(size=(6000, 6)) + 1.0


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # a replica sets it, and it is put back
    found = StandIn()
    monkeypatch.setitem(sys.modules, "ray", found)
    return found


def test_names_of_rows_are_looked_up_by_a_replica(
    ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    Path("ids.txt").write_text("".join(f"doc-{i}\n" for i in range(6000)))
    Path("texts.csv").write_text("id,body\n" + "".join(f"{i},text {i}\n" for i in range(6000)))
    Path("body").touch()
    reading = Input(vectors="rows.npy", id_column="ids.txt", text_column="texts.csv:body")
    given = use_absolute_paths(reading)
    assert (given.id_column, given.text_column) == (str(tmp_path / "ids.txt"), f"{tmp_path / 'texts.csv'}:body")
    assert use_absolute_paths(Input(vectors="rows.npy", text_column="body")).text_column == "body"
    source = ray.workers(2).open(reading)
    assert source.has_names
    source.check_names()
    assert source.find_names(np.array([5999], np.uint64)) == {5999: RowName("doc-5999", "text 5999")}
    Path("ids.txt").write_text("one\n")
    with pytest.raises(InputError, match="holds 1 ids and there are 6,000 rows"):
        ray.workers(1).open(reading).check_names()


def _count(batch: Batch) -> int:
    return len(batch.rows)


def _rows(batches: Iterable[Batch], _: Any) -> int:
    return sum(len(batch.rows) for batch in batches)


def test_texts_that_are_names_of_files_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes", "a.png", "rows.npy"):
        Path(name).touch()
    assert use_absolute_paths(Input(text=["notes", "other"])).text == ["notes", "other"]
    assert use_absolute_paths(Input(text="notes")).text == str(tmp_path / "notes")
    assert use_absolute_paths(Input(text=["a.png"])).text == [str(tmp_path / "a.png")]
    assert use_absolute_paths(Input(vectors=["rows.npy"])).vectors == [str(tmp_path / "rows.npy")]


def test_one_that_finds_other_files_refuses_and_opens_anew(ray: StandIn, tmp_path: Path) -> None:
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", ROWS[:1000])
    reading = ray.put(Input(vectors=str(tmp_path), bad_files=SKIP_UNOPENED, batch_size=10))
    given = Given(1, reading)
    given = given._replace(identity=Replica().about(given)["identity"])
    whole = (tmp_path / "1.npy").read_bytes()
    (tmp_path / "1.npy").write_bytes(b"unreadable for a moment")
    other = Replica()
    with pytest.raises(InputError, match=r"a worker finds 2,000 rows without .*1\.npy and the first one found others"):
        other.read(given, _rows, 0, None, skip=True)
    (tmp_path / "1.npy").write_bytes(whole)
    facts, rows = other.read(given, _rows, 0, None, skip=True)
    assert (facts.units, rows, facts.bad) == (160, 160, None)


def test_only_what_cannot_be_read_is_skipped(ray: StandIn) -> None:
    def made(batches: Iterable[Batch], _: Any) -> None:
        for _batch in batches:
            raise InputError("the group column has too many values")

    given = Given(1, ray.put(Input(vectors=ROWS, batch_size=10)))
    with pytest.raises(InputError, match="too many values"):
        Replica().read(given, made, 0, None, skip=True)


def test_the_input_is_fetched_once(ray: StandIn) -> None:
    given, replica = Given(1, ray.put(Input(vectors=ROWS, batch_size=10))), Replica()
    for number in range(5):
        replica.read(given, _rows, number, None, skip=False)
    assert ray.got == 1


def test_one_thread_whatever_the_cluster_says(ray: StandIn) -> None:
    Replica()
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_a_life_that_changes_is_a_shard_begun_again(ray: StandIn) -> None:
    workers = ray.workers(2)
    source = workers.open(Input(vectors=ROWS, batch_size=10))
    made = source.map(_count)
    for _ in range(16):  # the batches of the first shard
        next(made)
    ray.replicas[1]._life = "another"
    assert sum(made) == len(ROWS) - 160
    assert workers.engine["retried_shards"] == 1


def test_shards_are_never_begun_far_ahead(ray: StandIn) -> None:
    """Those begun last are done first: the worst that can happen to whoever waits for the first."""
    source = ray.workers(3).open(Input(vectors=ROWS, batch_size=10))
    shards = source._shards(_rows, 0, [None])
    next(shards)
    assert ray.begun["read"] == _AHEAD * 3
    brought = ray.workers(3).open(Input(vectors=ROWS, batch_size=10)).map(_count)
    ray.begun.clear()
    next(brought)
    assert ray.begun["read"] == _HELD * 3


def test_skipped_shards_by_number_also_after_a_resume(ray: StandIn, tmp_path: Path) -> None:
    import pandas as pd

    rows: list[Any] = list(ROWS[:3600])
    rows[1285] = rows[1290] = rows[3300] = None  # in the shards 16 and 41 of 45
    pd.DataFrame({"x": rows}).to_parquet(tmp_path / "rows.parquet")
    reading = Input(vectors=str(tmp_path / "rows.parquet"), batch_size=5, bad_files=SKIP_UNOPENED)
    kept: dict[int, Collection] = {}

    def keep(now: Collection) -> None:
        assert now.counts["skipped_shards"] == len(now.skipped) == (now.shards > 16) + (now.shards > 41)
        kept[now.shards] = now + Collection(now.wanted)

    source = ray.workers(3, skip=True).open(reading)
    whole = source.reduce(Collection(Wanted(sample=50)), keep=keep, every=0)
    names = list(source.engine["skipped_shards"])
    assert names == ["shard 16 (rows 1,280 to 1,359)", "shard 41 (rows 3,280 to 3,359)"]
    assert kept.keys() == {16, 32}
    run = Run(tmp_path / "run")
    with run.reserve(resume=False):
        checkpoints.save_checkpoint(run.checkpoints, {"source": {}, "settings": {}}, kept[32])
        begun = checkpoints.load_checkpoint(run.checkpoints, {"source": {}, "settings": {}}, kept[32].wanted)
    again = ray.workers(2, skip=True).open(reading)
    resumed = again.reduce(begun, keep=keep, every=0)
    assert list(again.engine["skipped_shards"]) == names
    assert (resumed.counts, resumed.skipped) == (whole.counts, whole.skipped)
    assert resumed.counts["skipped_shards"] == 2
    assert not begun.summaries  # released here as soon as it was sent
