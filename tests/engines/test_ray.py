"""The same numbers on a cluster as in this process, however many workers there are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.findings import Findings
from isotrope.runs.run import Run
from isotrope.statistics import Summary
from isotrope.storage.files import read_arrays

pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("cluster")


def _rows() -> np.ndarray:
    rows = np.random.default_rng(3).normal(size=(9000, 12)) * np.arange(1, 13) + 4.0
    rows[17], rows[4017, 3] = 0.0, np.nan
    return rows


def _apart(one: Findings, other: Findings, but: tuple[str, ...] = ()) -> float:
    """The largest relative difference of two runs' readings, whose names must be the same."""
    assert [(r.layer, r.measure, r.group) for r in one.readings] == [
        (r.layer, r.measure, r.group) for r in other.readings
    ]
    apart = 0.0
    for a, b in zip(one.readings, other.readings, strict=True):
        assert math.isnan(a.value) == math.isnan(b.value), a.measure
        if not math.isnan(a.value) and a.measure not in but:
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
    options: dict[str, Any] = {"vectors": _rows(), "sample": 700, "batch_size": 8, "keep": "all"}
    here = isotrope.scan(**options, output=tmp_path / "here")
    there = isotrope.scan(**options, output=tmp_path / "there", engine="ray", workers=workers)
    assert _apart(here, there) < 1e-9
    _same_samples(tmp_path / "here", tmp_path / "there")
    assert there.counts == here.counts | {"retried_shards": 0}
    told = there.provenance["engine"]
    assert (told["name"], told["workers"], told["retried_shards"]) == ("ray", workers, 0)
    assert here.provenance["engine"] == {"name": "local"}


@pytest.mark.long
def test_a_folder_by_its_address(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "set").mkdir()
    for i in range(3):
        np.save(tmp_path / f"set/{i}.npy", _rows()[3000 * i : 3000 * i + 3000])
    options: dict[str, Any] = {"vectors": f"file://{tmp_path}/set", "sample": 700, "batch_size": 8}
    here = isotrope.scan(**options)
    there = isotrope.scan(**options, engine="ray", workers=2)
    assert there.counts == here.counts | {"retried_shards": 0}
    assert _apart(here, there) < 1e-9


@pytest.mark.long
def test_groups_of_a_parquet_data_set(tmp_path: Path) -> None:
    rows = _rows()
    kinds = np.random.default_rng(6).choice(["ä", "b/c", "rare"], size=len(rows), p=[0.6, 0.395, 0.005])
    folder = tmp_path / "set"
    folder.mkdir()
    for i in range(3):
        part = slice(3000 * i, 3000 * i + 3000)
        pd.DataFrame({"x": list(rows[part]), "kind": kinds[part]}).to_parquet(folder / f"{i}.parquet")
    options: dict[str, Any] = {"vectors": folder, "column": "x", "group_by": "kind", "sample": 300, "batch_size": 25}
    options["keep"] = "all"
    here = isotrope.scan(**options, output=tmp_path / "here")
    there = isotrope.scan(**options, output=tmp_path / "there", engine="ray", workers=2)
    assert _apart(here, there) < 1e-9
    _same_samples(tmp_path / "here", tmp_path / "there")
    assert here.source == there.source


@pytest.mark.long
def test_a_model_is_identical_with_the_same_batches(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from testkit.models import save_model, texts

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
    # The very same rows, merged in another order: only unit sums of token types are kept in float32.
    assert _apart(here, there) < 1e-6
    assert _apart(here, there, but=("self_similarity", "self_similarity_adjusted")) < 1e-9
    assert there.counts == here.counts | {"retried_shards": 0}
    # A slope of nearly nothing is a small difference of large numbers, of which float32 states have seven digits.
    flat = ("mean_norm_on_frequency_slope", "mean_norm_on_frequency_r2")
    assert _apart(other, there, but=flat) < 1e-5
    for name in flat:
        assert there.get(name, 1).value == pytest.approx(other.get(name, 1).value, abs=1e-6)
    pd.testing.assert_frame_equal(here.tables["tokens"], there.tables["tokens"], rtol=1e-9)
    again = isotrope.scan(**options, batch_size=4, engine="ray", workers=3)
    assert [r.value for r in again.readings] == [r.value for r in there.readings]


@pytest.mark.long
def test_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("transformers")
    from testkit.media_models import save_image_model

    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(21):
        pixels = np.random.default_rng(i).integers(0, 255, (30, 30 + i % 2, 3), dtype=np.uint8)
        image.fromarray(pixels).save(folder / f"{i:02d}.png")
    (folder / "07.png").write_text("broken")
    model = save_image_model(tmp_path / "vit", "vit")
    options: dict[str, Any] = {"model": model, "text": folder, "batch_size": 2, "sample": 100}
    here = isotrope.scan(**options, output=tmp_path / "here")
    there = isotrope.scan(**options, output=tmp_path / "there", engine="ray", workers=2)
    assert there.counts == here.counts | {"retried_shards": 0}
    assert there.counts["broken_images"] == 1
    assert _apart(here, there) < 1e-5


@pytest.mark.parametrize("name", ["whitening", pytest.param("clusters", marks=pytest.mark.long)])
def test_a_repair_is_fitted_and_applied_by_workers(name: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(4000, 8)).astype(np.float32) * np.arange(1, 9, dtype=np.float32) + 2
    np.save(tmp_path / "rows.npy", rows)
    where = ["--engine", "ray", "--workers", "2", "--batch-size", "10", "--json"]
    given = [str(tmp_path / "rows.npy"), "--with", name, "-o"]
    fitted = _command("repair", "fit", *given, str(tmp_path / name), *where)
    _command("repair", "fit", *given, str(tmp_path / f"{name} here"), "--batch-size", "10", "--json")
    there, here = (isotrope.load_repair(tmp_path / folder) for folder in (name, f"{name} here"))
    assert fitted["fitted_on"]["rows"] == here.fitted_on_["rows"] == 4000
    np.testing.assert_allclose(there.transform(rows), here.transform(rows), rtol=1e-4, atol=1e-5)
    out = tmp_path / f"{name}.npy"
    applied = _command("repair", "apply", str(tmp_path / name), str(tmp_path / "rows.npy"), "-o", str(out), *where)
    assert applied["rows"] == 4000
    alone = tmp_path / f"{name} alone.npy"
    _command("repair", "apply", str(tmp_path / name), given[0], "-o", str(alone), "--batch-size", "10", "--json")
    np.testing.assert_array_equal(np.load(out), np.load(alone))


@pytest.mark.long
def test_a_row_that_cannot_be_repaired_is_named_by_its_number(tmp_path: Path) -> None:
    rows = _rows()[:2000].astype(np.float32)
    isotrope.Centering().fit(rows).save(tmp_path / "centering")
    rows[1234, 2] = np.inf
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(InputError, match="row 1,234, counted from 0, holds NaN or inf"):
        _command("repair", "apply", str(tmp_path / "centering"), str(tmp_path / "rows.npy"), "-o",
                 str(tmp_path / "out.npy"), "--engine", "ray", "--workers", "2", "--batch-size", "10")  # fmt: skip
    assert not (tmp_path / "out.npy").exists()


def _command(*arguments: str) -> Any:
    """What a command prints as JSON; run here, where Ray is connected already."""
    from typer.testing import CliRunner

    from isotrope.cli.main import app

    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return json.loads(result.stdout)


@pytest.mark.long
def test_sentence_similarity_and_search_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from testkit.models import save_model, texts

    model = save_model(tmp_path / "bert", "bert")
    sets = tmp_path / "sets"
    (sets / "qrels").mkdir(parents=True)
    words = texts(240)
    lines = [f"PAD\tPAD\tPAD\t{i}\t{i % 6}\t{words[2 * i]}\t{words[2 * i + 1]}\n" for i in range(120)]
    (sets / "sts-b-test.csv").write_text("".join(lines))
    options: dict[str, Any] = {"model": model, "data": sets, "repairs": ["whitening"], "batch_size": 8}
    here = isotrope.evaluate_sts(**options)
    there = isotrope.evaluate_sts(**options, engine="ray", workers=2)
    for a, b in zip(here.scores, there.scores, strict=True):
        assert (a.set, a.repair, a.model, a.n) == (b.set, b.repair, b.model, b.n)
        assert a.spearman == pytest.approx(b.spearman, abs=1e-3)
    assert there.provenance["engine"]["workers"] == 2
    documents = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(words)]
    queries = [{"_id": f"q{i}", "text": words[i]} for i in range(0, 240, 8)]
    (sets / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in documents))
    (sets / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(0, 240, 8))
    (sets / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    one = isotrope.evaluate_retrieval(**options)
    other = isotrope.evaluate_retrieval(**options, engine="ray", workers=2)
    assert [s.ndcg_at_10 for s in one.scores] == pytest.approx([s.ndcg_at_10 for s in other.scores], abs=1e-3)
