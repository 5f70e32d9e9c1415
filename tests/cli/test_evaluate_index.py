"""isotrope evaluate index: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from testkit.command import Command, one_sentence

pytest.importorskip("faiss")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.npy"
    np.save(path, (np.random.default_rng(0).normal(size=(120, 16)) + 1).astype(np.float32))
    return path


def test_what_people_read_and_the_file(isotrope: Command, rows: Path) -> None:
    result = isotrope("evaluate", "index", rows, "--recall", "0.9", "--k", "5", "-o", "index.json")
    assert result.code == 0, result.err
    for words in (
        "96 vectors, 24 queries, 5 neighbours by cosine",
        "recall@5",
        "After centering",
        "binary, 4k rescored",
        "2+64",
        "it needs at least 256 vectors to train on, got 96",
        "The queries are 24 of the vectors, drawn at random and left out of the index.",
        "Cheapest for a recall of 0.9:",
        "Written to index.json.",
    ):
        assert words in result.out
    found = json.loads(Path("index.json").read_text())
    assert (found["k"], found["wanted"], found["documents"]) == (5, 0.9, 96)


def test_one_json_document(isotrope: Command, rows: Path) -> None:
    result = isotrope("evaluate", "index", rows, "--repair", "none", "--json")
    assert (result.code, result.err) == (0, "")
    assert {score["repair"] for score in result.json["scores"]} == {"none"}
    assert result.json["scores"][0]["recall"] == 1
    assert result.json["recommendation"]["bytes"] > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recall", "1.01"], "wanted recall 1.01"),
        (["--k", "0"], "got k 0"),
        (["--repair", "centring"], "centring"),
        (["--queries", "nosuch.npy"], "nosuch.npy"),
        (["--qrels", "qrels.tsv"], "--qrels without --queries"),
        (["--column", "x"], "column='x'"),
        (["-o", "index.txt"], "index.txt"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_what_cannot_be_followed_is_refused(isotrope: Command, rows: Path, options: list[str], words: str) -> None:
    assert words in one_sentence(isotrope("evaluate", "index", rows, *options))
