"""Sets of sentence pairs from folders and datasets, whole, with subsets, and broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isotrope.errors import InputError
from isotrope.evaluation import pairs
from isotrope.evaluation.pairs import PairSet, read_sets

Write = Callable[..., Path]

LINE = "genre\tfile\t2012\t7\t{}\t{}\t{}\n"


def shape(found: list[PairSet]) -> dict[str, dict[str, int]]:
    return {one.name: {part.name: len(part) for part in one.parts} for one in found}


def test_whole_sets_and_their_subsets(write_set: Write) -> None:
    for name in ("MSRpar", "surprise.OnWN"):
        folder = write_set(f"sts12.{name}", 5)
        write_set("sts12", 5, append=name != "MSRpar")
    write_set("sts-b", 7)
    write_set("another", 3)
    assert shape(read_sets(None, folder, "concatenated")) == {
        "sts-b": {"sts-b": 7},
        "sts12": {"sts12": 10},
        "another": {"another": 3},
    }
    assert shape(read_sets(["sts12", "sts-b"], folder, "paper")) == {
        "sts12": {"sts12.MSRpar": 5, "sts12.surprise.OnWN": 5},
        "sts-b": {"sts-b": 7},
    }
    assert shape(read_sets(["sts12.MSRpar"], folder, "paper")) == {"sts12.MSRpar": {"sts12.MSRpar": 5}}


def test_what_a_line_says(tmp_path: Path) -> None:
    (tmp_path / "x-test.csv").write_text(LINE.format("3.5", 'a "quoted', "don 't") + "\r\n", encoding="utf-8-sig")
    (found,) = read_sets(None, tmp_path, "concatenated")
    assert found.sentences == ['a "quoted', "don 't"]
    assert found.parts[0].gold.tolist() == [3.5]


def test_the_folder_sts_is_found(write_set: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_set("sts-b", 4)
    folder.rename(folder.parent / "sts")
    assert shape(read_sets(None, folder.parent, "paper")) == {"sts-b": {"sts-b": 4}}
    monkeypatch.setenv("ISOTROPE_DATA", str(folder.parent))
    assert shape(read_sets(None, None, "paper")) == {"sts-b": {"sts-b": 4}}


def test_subsets_without_a_whole_file(write_set: Write) -> None:
    write_set("sts13.FNWN", 4)
    folder = write_set("sts13.OnWN", 5)
    assert shape(read_sets(None, folder, "concatenated")) == {"sts13": {"sts13": 9}}
    assert shape(read_sets(["sts13"], folder, "paper")) == {"sts13": {"sts13.FNWN": 4, "sts13.OnWN": 5}}


def test_subsets_by_column(write_set: Write) -> None:
    """Of a year; STS-B, whose pairs come from many files too, is one set."""
    for name in ("sts14", "sts-b"):
        write_set(name, 4, file="images")
        folder = write_set(name, 6, file="headlines", append=True)
    assert shape(read_sets(None, folder, "paper")) == {
        "sts-b": {"sts-b": 10},
        "sts14": {"sts14.images": 4, "sts14.headlines": 6},
    }


def test_pairs_without_score_or_sentence_are_counted(tmp_path: Path) -> None:
    lines = [LINE.format(*cells) for cells in (("1", "a", "b"), ("", "a", "b"), ("2", " ", "b"), (" ", "c", "d"))]
    (tmp_path / "x-test.csv").write_text("".join(lines))
    (found,) = read_sets(["x"], tmp_path, "concatenated")
    assert len(found.parts[0]) == 1
    assert found.left_out == {"without a score": 2, "with an empty sentence": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\tc\n", r"line 1 of '.*x-test.csv' has 3 columns, expected 7 between tabs: genre, file, year"),
        (LINE.format("1", "a", "b") + LINE.format("high", "a", "b"), r"line 2 of .* has the score 'high', expected"),
        (LINE.format("inf", "a", "b"), r"line 1 of .* has the score 'inf', expected a number or nothing"),
        (LINE.format("", "a", "b"), "the set x has no pair with a score and two sentences"),
        ("", "the set x has no pair"),
        (b"\xff\xfe\x00", "cannot be read as UTF-8 text"),
    ],
)
def test_broken_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "x-test.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        read_sets(None, tmp_path, "concatenated")


def test_unknown_sets_protocols_and_folders(write_set: Write, tmp_path: Path) -> None:
    folder = write_set("sts-b", 4)
    with pytest.raises(InputError, match=r"there is no set 'sts-c' in '.*' \(did you mean 'sts-b'\?\)\."):
        read_sets(["sts-c"], folder, "paper")
    with pytest.raises(InputError, match=r"no set 'mnli' in .*; there are sts-b\."):
        read_sets(["mnli"], folder, "paper")
    with pytest.raises(InputError, match=r"no protocol 'papper' \(did you mean 'paper'\?\); say paper or concatenated"):
        read_sets(None, folder, "papper")
    with pytest.raises(InputError, match=r"there is no folder '.*nowhere'"):
        read_sets(None, tmp_path / "nowhere", "paper")
    with pytest.raises(InputError, match=r"holds no set; expected files named as sts-b-test\.csv"):
        read_sets(None, folder.parent, "paper")


def test_years_without_known_subsets_are_refused(write_set: Write) -> None:
    folder = write_set("sts16", 4)
    assert shape(read_sets(None, folder, "concatenated")) == {"sts16": {"sts16": 4}}
    with pytest.raises(InputError, match="the subsets of sts16 are not known"):
        read_sets(None, folder, "paper")
    write_set("sts16.headlines", 3)
    with pytest.raises(InputError, match=r"hold 3 pairs in all, sts16-test\.csv 4; add the files that are missing"):
        read_sets(None, folder, "paper")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset with the columns that the hub's have, in the place of one of the hub."""
    pytest.importorskip("datasets")
    folder = tmp_path / "dataset"
    folder.mkdir()
    lines = ["sentence1,sentence2,score", "a cat,a mat,2.5", "old dogs,old dogs,5.0", "deep water,hills,"]
    (folder / "test.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setitem(pairs.HUB, "sts-b", folder)
    monkeypatch.setitem(pairs.HUB, "sts12", folder)
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    return folder


def test_datasets(dataset: Path) -> None:
    (found,) = read_sets(["sts-b"], None, "paper")
    assert found.sentences == ["a cat", "old dogs", "a mat", "old dogs"]
    assert found.parts[0].gold.tolist() == [2.5, 5.0]
    assert found.left_out == {"without a score": 1}
    with pytest.raises(InputError, match="the hub's sts12 does not say which subset a pair is of"):
        read_sets(["sts12"], None, "paper")
    assert shape(read_sets(["sts12"], None, "concatenated")) == {"sts12": {"sts12": 2}}
    with pytest.raises(InputError, match=r"no set 'sts-x' on the hub \(did you mean 'sts-b'"):
        read_sets(["sts-x"], None, "paper")


def test_datasets_with_other_columns(dataset: Path) -> None:
    (dataset / "test.csv").write_text("left,right\na,b\n")
    with pytest.raises(InputError, match="has no columns score, sentence1 and sentence2; it has left, right"):
        read_sets(["sts-b"], None, "concatenated")


def test_without_network_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    monkeypatch.setattr("isotrope.sources.corpora.datasets.hub_answers", lambda: False)
    with pytest.raises(
        InputError, match=r"the set sickr is not here: .* \(no network\); .* or name a folder with --data"
    ):
        read_sets(["sickr"], None, "concatenated")
