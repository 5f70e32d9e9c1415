"""isotrope repair: rows unlike those of the fit, unit length, other columns, gains and rounding."""

from __future__ import annotations

import json
from pathlib import Path

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

import isotrope as library
from isotrope.repairs import persistence as saved
from testkit.command import Command, one_sentence

rng = np.random.default_rng(5)
RAW = (rng.normal(size=(900, 8)) * np.geomspace(3, 0.2, 8) + 1.0).astype(np.float32) * 10
UNIT = RAW / np.linalg.norm(RAW, axis=1, keepdims=True)


@pytest.fixture
def fitted(isotrope: Command) -> Command:
    """The command line, beside rows and SoftDecays of them in `of-raw` and `of-unit`."""
    for name, rows in (("raw", RAW), ("unit", UNIT)):
        np.save(f"{name}.npy", rows)
        assert isotrope("repair", "fit", f"{name}.npy", "--with", "softdecay", "-o", f"of-{name}").code == 0
    return isotrope


def test_rows_unlike_those_of_the_fit_are_refused_unless_allowed(fitted: Command) -> None:
    for repair, rows in (("of-raw", "unit.npy"), ("of-unit", "raw.npy")):
        sentence = one_sentence(fitted("repair", "apply", repair, rows, "-o", "out.npy"))
        assert "median length" in sentence
        assert "--normalize input" in sentence
        assert "--allow-mismatch" in sentence
        assert not Path("out.npy").exists()
    assert fitted("repair", "apply", "of-raw", "unit.npy", "-o", "out.npy", "--allow-mismatch").code == 0
    found = np.load("out.npy")
    np.testing.assert_allclose(found, library.load_repair("of-raw").map_(UNIT), atol=1e-6)


def test_one_row_is_applied_without_an_alarm(fitted: Command) -> None:
    for i in range(0, 900, 90):
        np.save(f"{i}.npy", RAW[i : i + 1])
        result = fitted("repair", "apply", "of-raw", f"{i}.npy", "-o", f"out-{i}.npy")
        assert (result.code, result.err) == (0, "")


def test_normalize_on_input_and_output(fitted: Command) -> None:
    expected = library.load_repair("of-unit").transform(UNIT)
    assert fitted("repair", "apply", "of-unit", "raw.npy", "--normalize", "input", "-o", "a.npy").code == 0
    np.testing.assert_allclose(np.load("a.npy"), expected, atol=1e-6)
    assert fitted("repair", "apply", "of-raw", "raw.npy", "--normalize", "output", "-o", "b.npy").code == 0
    np.testing.assert_allclose(np.linalg.norm(np.load("b.npy"), axis=1), 1.0, atol=1e-6)
    assert fitted("repair", "apply", "of-unit", "unit.npy", "--normalize", "none", "-o", "c.npy").code == 0
    assert np.ptp(np.linalg.norm(np.load("c.npy"), axis=1)) > 0.05
    sentence = one_sentence(fitted("repair", "apply", "of-unit", "unit.npy", "--normalize", "both!", "-o", "d.npy"))
    assert "none, input, output, both" in sentence


@pytest.mark.parametrize("name", ["softdecay", "whitening", "centering", "clusters"])
def test_fitted_with_normalize_any_length_goes_in_and_length_one_comes_out(name: str, isotrope: Command) -> None:
    np.save("raw.npy", RAW)
    np.save("unit.npy", UNIT)
    few = ["--clusters", "3", "--directions", "1"] if name == "clusters" else []
    assert isotrope("repair", "fit", "raw.npy", "--with", name, *few, "--normalize", "-o", "out").code == 0
    config = json.loads(Path("out/config.json").read_text())
    assert config["normalize"] == ("output" if name == "softdecay" else "both")
    outs = []
    for rows in ("raw", "unit"):
        assert isotrope("repair", "apply", "out", f"{rows}.npy", "-o", f"{rows}-out.npy").code == 0
        outs.append(np.load(f"{rows}-out.npy"))
    np.testing.assert_allclose(*outs, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(outs[0], axis=1), 1.0, atol=1e-6)


def test_an_index_by_inner_product_stays_one_by_cosine(fitted: Command) -> None:
    assert fitted("repair", "apply", "of-unit", "unit.npy", "-o", "out.npy").code == 0
    rows = np.load("out.npy")
    by_product = faiss.IndexFlatIP(8)
    by_product.add(rows)
    found = by_product.search(rows[:200], 10)[1]
    cosines = rows @ rows.T / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows, axis=1)[:, None]
    expected = np.argsort(-cosines[:200], axis=1)[:, :10]
    same = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, expected, strict=True)])
    assert same > 0.999
    bare = library.load_repair("of-unit").map_(UNIT)
    by_bare = np.argsort(-(bare[:200] @ bare.T), axis=1)[:, :10]
    lost = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(by_bare, expected, strict=True)])
    assert lost < 0.95  # what the test would miss without unit length


def test_a_repair_of_the_first_version_says_that_rows_are_not_compared(fitted: Command) -> None:
    facts, arrays = saved.read("of-unit")
    for name in ("normalize", "query_rounding", "saved", "isotrope", "format"):
        facts.pop(name)
    for name in ("storage", "lengths"):
        facts["fitted_on"].pop(name)
    saved.write("old", facts, arrays)
    result = fitted("repair", "apply", "old", "raw.npy", "-o", "out.npy")
    assert result.code == 0
    assert result.err.count("these are not compared") == 1
    assert fitted("repair", "show", "old").code == 0


def test_fit_and_show_tell_gains_and_rounding(isotrope: Command) -> None:
    rows = UNIT.astype(np.float64)
    rows[:, 3] *= 1e-8
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.save("wide.npy", rows)
    np.save("narrow.npy", rows.astype(np.float32))
    told = isotrope("repair", "fit", "wide.npy", "--with", "softdecay", "--form", "paper", "-o", "paper").out
    assert "times the median" in told
    assert "turned round" in told
    assert "Queries rounded to float16 keep" in told
    assert "Queries rounded to float16 keep" in isotrope("repair", "show", "paper").out
    document = isotrope("repair", "show", "paper", "--json").json
    assert document["gain_summary"]["ratio"] > 1e4
    assert document["query_rounding"] == library.load_repair("paper").query_rounding_.to_dict()  # type: ignore[union-attr]
    assert (
        "left alone" in isotrope("repair", "fit", "narrow.npy", "--with", "softdecay", "--form", "paper", "-o", "n").out
    )
    calm = isotrope("repair", "fit", "wide.npy", "--with", "softdecay", "-o", "calm", "--json").json
    assert calm["parameters"]["form"] == "shifted"
    assert calm["query_rounding"]["float16"] > 0.95
    assert calm["risks"] == []


def table(rows: np.ndarray) -> pd.DataFrame:
    count = len(rows)
    made = pd.DataFrame({"id": [f"doc {i}" for i in range(count)], "embedding": list(rows), "n": np.arange(count)})
    made["n"] = made["n"].astype(np.int16)
    made["text"] = [None if i % 5 == 0 else "é" * (i % 9) for i in range(count)]
    made["when"] = pd.date_range("2024-01-01", periods=count, freq="h")
    made["kind"] = pd.Categorical(np.where(np.arange(count) % 3, "a", "b"))
    made["tags"] = [["x"] * (i % 3) for i in range(count)]
    return made


def write_arrow(path: str, frame: pd.DataFrame) -> None:
    whole = pa.Table.from_pandas(frame)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=130)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_other_columns_are_kept_as_they_are(suffix: str, fitted: Command) -> None:
    given = table(UNIT)
    if suffix == "parquet":
        given.to_parquet("docs.parquet", row_group_size=170)
    else:
        write_arrow("docs.arrow", given)
    result = fitted("repair", "apply", "of-unit", f"docs.{suffix}", "-o", "out.parquet", "--batch-size", "64")
    assert (result.code, result.err) == (0, "")
    given.to_parquet("plain.parquet")
    before, after = pq.read_schema("plain.parquet"), pq.read_schema("out.parquet")
    assert after.names == before.names
    assert [after.field(n).type for n in after.names if n != "embedding"] == [
        before.field(n).type for n in before.names if n != "embedding"
    ]
    found, expected_table = (pd.read_parquet(f"{name}.parquet") for name in ("out", "plain"))
    pd.testing.assert_frame_equal(found.drop(columns="embedding"), expected_table.drop(columns="embedding"))
    expected = library.load_repair("of-unit").transform(UNIT)
    np.testing.assert_allclose(np.stack(found["embedding"].to_list()), expected, atol=1e-6)


def test_several_tables_keep_what_they_have_in_common(fitted: Command) -> None:
    given = table(UNIT)
    Path("parts").mkdir()
    given[:400].to_parquet("parts/0.parquet")
    given[400:].drop(columns="kind").to_parquet("parts/1.parquet")
    assert fitted("repair", "apply", "of-unit", "parts", "-o", "out.parquet").code == 0
    found = pd.read_parquet("out.parquet")
    assert list(found.columns) == ["id", "embedding", "n", "text", "when", "tags"]
    assert found["id"].tolist() == given["id"].tolist()


def test_arrays_as_long_as_the_rows_become_columns(fitted: Command) -> None:
    ids = np.array([f"doc {i}" for i in range(900)])
    np.savez("docs.npz", vectors=UNIT, ids=ids, labels=np.arange(900), other=np.arange(7))
    assert fitted("repair", "apply", "of-unit", "docs.npz", "-o", "out.parquet").code == 0
    found = pd.read_parquet("out.parquet")
    assert sorted(found.columns) == ["ids", "labels", "vectors"]
    assert found["ids"].tolist() == ids.tolist()
    assert found["labels"].tolist() == list(range(900))
    save_file({"vectors": UNIT, "labels": np.arange(900)}, "docs.safetensors")
    assert fitted("repair", "apply", "of-unit", "docs.safetensors", "-o", "tensors.parquet").code == 0
    assert pd.read_parquet("tensors.parquet")["labels"].tolist() == list(range(900))


def test_what_has_no_place_in_a_file_of_numbers_is_told(fitted: Command) -> None:
    table(UNIT).to_parquet("docs.parquet")
    result = fitted("repair", "apply", "of-unit", "docs.parquet", "-o", "out.npy")
    assert result.code == 0
    assert "the columns id, n, text, when, kind, tags have no place in a .npy file" in result.err
    assert np.load("out.npy").shape == (900, 8)
