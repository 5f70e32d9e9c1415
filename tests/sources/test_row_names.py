"""Ids and texts of rows: where they are read from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.row_names import AT_ONCE, NameColumn, RowName, RowNames, shorten_text
from isotrope.sources.vectors.name_columns import open_vector_names
from isotrope.sources.vectors.source import ArraySource

ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
IDS = [f"doc-{i}" for i in range(6)]
TEXTS = [f"text {i}" for i in range(6)]
WANTED = np.array([4, 1])
FOUND = {1: RowName("doc-1", "text 1"), 4: RowName("doc-4", "text 4")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", ROWS)
    np.savez(tmp_path / "rows.npz", vectors=ROWS, key=np.array(IDS), body=np.array(TEXTS))
    table = pd.DataFrame({"key": IDS, "body": TEXTS})
    table.assign(vector=list(ROWS)).to_parquet(tmp_path / "rows.parquet", row_group_size=2)
    table.assign(vector=list(ROWS)).to_feather(tmp_path / "rows.arrow")
    table.to_csv(tmp_path / "names.csv", index=False)
    (tmp_path / "names.jsonl").write_text("".join(json.dumps(line) + "\n" for line in table.to_dict("records")))
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("vectors", "ids", "texts"),
    [
        ("rows.parquet", "key", "body"),
        ("rows.arrow", "key", "body"),
        ("rows.npz", "key", "body"),
        ("rows.npy", "ids.txt", "texts.txt"),
        ("rows.npy", "names.csv:key", "names.csv:body"),
        ("rows.npy", "names.jsonl:key", "names.jsonl:body"),
        ("rows.npy", "rows.parquet:key", "rows.arrow:body"),
    ],
)
def test_names_from_columns_and_files(
    vectors: str, ids: str, texts: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    source = Input(vectors=vectors, id_column=ids, text_column=texts).open()
    source.check_names()
    assert source.find_names(WANTED) == FOUND


def test_names_of_a_list_of_files_go_on_from_file_to_file(folder: Path, tmp_path: Path) -> None:
    more = pd.DataFrame({"key": ["other-0", "other-1"], "body": ["a", None], "vector": list(ROWS[:2])})
    more.to_parquet(tmp_path / "more.parquet")
    source = ArraySource([str(folder / "rows.parquet"), str(tmp_path / "more.parquet")])
    names = open_vector_names(source, "key", "body")
    assert names is not None
    names.check()
    assert names.find(np.array([5, 7])) == {5: RowName("doc-5", "text 5"), 7: RowName("other-1", None)}


def test_names_of_an_array_in_memory() -> None:
    source = Input(vectors=ROWS, id_column=IDS, text_column=pd.Series(TEXTS)).open()
    source.check_names()
    assert source.find_names(WANTED) == FOUND


def test_names_of_texts_skip_what_the_corpus_skips(tmp_path: Path) -> None:
    lines = [{"_id": "a", "text": "one"}, {"_id": "b", "text": " "}, {"_id": "c", "text": "two words"}]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    reading = Input(text=str(tmp_path / "docs.jsonl"), column="text", id_column="_id", pooling="mean")
    names = reading._open_text_names(reading.open_corpus())
    assert names is not None
    names.check()
    assert names.find(np.array([0, 1])) == {0: RowName("a", "one"), 1: RowName("c", "two words")}


def test_only_what_is_asked_for_is_read() -> None:
    """Reading ends after the last row that is wanted."""
    read = []

    def begin() -> Any:
        for start in range(0, 10 * AT_ONCE, AT_ONCE):
            read.append(start)
            yield [str(row) for row in range(start, start + AT_ONCE)]

    names = RowNames(None, NameColumn("numbers", begin), None)
    wanted = np.array([3, AT_ONCE + 1])
    assert names.find(wanted) == {row: RowName(str(row)) for row in wanted.tolist()}
    assert read == [0, AT_ONCE]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b", "a", "d", "e", "f"], r"rows 0 and 2 .* are both 'a'"),
        (["a", None, "c", "d", "e", "f"], r"row 1 of the list of ids \(counted from 0\) has no id"),
        (["a", "b", " ", "d", "e", "f"], r"row 2 of .* has no id"),
        ([1.0, float("nan"), 3.0, 4.0, 5.0, 6.0], r"row 1 of .* has no id"),
        (IDS[:5], "holds 5 ids and there are 6 rows"),
        ([*IDS, "more"], "holds 7 ids and there are 6 rows"),
        ({"a": 1}, "got the ids as a dict"),
    ],
)
def test_ids_that_are_no_names(ids: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Input(vectors=ROWS, id_column=ids).open().check_names()


def test_texts_may_be_missing_but_not_fewer() -> None:
    source = Input(vectors=ROWS, text_column=["a", None, "", "b", "c", "d"]).open()
    source.check_names()
    assert source.find_names(np.array([1, 3])) == {1: RowName(), 3: RowName(None, "b")}
    with pytest.raises(InputError, match="holds 2 texts and there are 6 rows"):
        Input(vectors=ROWS, text_column=["a", "b"]).open().check_names()


@pytest.mark.parametrize(
    ("vectors", "ids", "said"),
    [
        ("rows.parquet", "kye", "did you mean 'key'.*it has the columns key, body"),
        ("rows.npy", "key", "has no columns beside the vectors"),
        ("rows.npy", "names.csv", "has the columns key, body, expected one"),
        ("rows.npy", "names.csv:id", "names.csv has no column 'id'; choose one of: key, body"),
        ("rows.npy", "ids.txt:id", "ids.txt has no column 'id'; it holds plain lines"),
    ],
)
def test_columns_that_are_not_there(
    vectors: str, ids: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=said):
        Input(vectors=vectors, id_column=ids).open()


def test_what_names_have_no_use_for() -> None:
    with pytest.raises(InputError, match="known already; leave text-column out"):
        Input(text=["one", "two"], text_column="body").open()


def test_different_ids_of_one_hash_are_no_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.sources.row_names.hash", lambda name: 0, raising=False)
    RowNames(2, NameColumn("ids", lambda: iter([["a", "b"]])), None).check()


def test_a_text_becomes_one_short_line() -> None:
    assert shorten_text(" a\n\tb ") == "a b"
    assert shorten_text("x" * 160) == "x" * 160
    assert shorten_text("x" * 161) == "x" * 159 + "…"
