"""isotrope scan of a model over a text, with a small random model."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
import pytest

from testkit.command import Command, one_sentence
from testkit.models import save_model, texts

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(texts(150)))
    return tmp_path / "texts.txt"


def test_every_layer(isotrope: Command, bert: Path, text: Path) -> None:
    result = isotrope("scan", "--model", bert, "--text", text, "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document["layers"] == [0, 1, 2, 3]
    assert document["model"] == str(bert)
    assert document["counts"]["texts"] == 150
    assert document["source"]["files"][0]["sha256"]
    assert document["source"]["corpus"]["sha256"]
    assert {r["layer"] for r in document["readings"] if r["measure"] == "self_similarity"} == {0, 1, 2, 3}
    across = [r for r in document["readings"] if r["measure"] == "drift_correlation_pearson"]
    assert [(r["layer"], r["n"]) for r in across] == [(None, 4)]
    assert not [r for r in document["readings"] if r["value"] is None and not r["reason"]]


def test_in_words(isotrope: Command, bert: Path, text: Path) -> None:
    result = isotrope("scan", bert, "--text", text, "-o", "run")
    assert result.code == 0, result.err
    assert result.out.startswith("bert over texts.txt  ")
    assert " rows of 150 texts, 4 layers of 16" in result.out
    rows = [line.split()[0] for line in result.out.splitlines() if line[:1].isdigit()]
    assert rows == ["0", "1", "2", "3"]
    tables = {path.stem for path in Path("run/tables").iterdir()}
    for_the_report = {"coordinates", "directions", "maps", "sample", "sequences", "tried"}
    assert tables == {"spectra", "tokens", "sequence_cdf"} | for_the_report
    tokens = pd.read_parquet("run/tables/tokens.parquet")
    assert {"[CLS]", "cat"} <= set(tokens["token"])


def test_layers_and_gates(isotrope: Command, bert: Path, text: Path) -> None:
    gates = ["--fail-on", "layer[1].mean_cosine > -1", "--fail-on", "all.mean_cosine > 2"]
    result = isotrope("scan", bert, "--text", text, "--layers", "0,1,-1", "--json", *gates)
    assert result.code == 1
    assert "gate tripped: layer[1].mean_cosine is " in result.err
    assert result.json["layers"] == [0, 1, 3]
    refused = isotrope("scan", bert, "--text", text, "--layers", "0,1", "--json", "--fail-on", "layer[3].eee > 0")
    assert "layer 3" in one_sentence(refused)


def test_standard_input(isotrope: Command, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO("\n".join(texts(60)).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    document = isotrope("scan", "--model", bert, "-", "--pooling", "mean", "--json").json
    assert document["counts"]["texts"] == 60
    assert document["readings"][0]["n"] == 60


def test_groups_of_texts(isotrope: Command, bert: Path) -> None:
    frame = pd.DataFrame({"text": texts(90), "language": ["de", "en", "fr"] * 30})
    frame.to_csv("texts.csv", index=False)
    options = ["--measures", "mean_cosine,self_similarity", "--sample", "0", "--json"]
    grouped = isotrope("scan", bert, "--text", "texts.csv", "--column", "text", "--group-by", "language", *options).json
    whole = isotrope("scan", bert, "--text", "texts.csv", "--column", "text", *options).json
    frame[frame["language"] == "en"].to_csv("en.csv", index=False)
    english = isotrope("scan", bert, "--text", "en.csv", "--column", "text", *options).json
    for group, other in ((None, whole), ("en", english)):
        mine = [r for r in grouped["readings"] if r["group"] == group]
        for a, b in zip(mine, other["readings"], strict=True):
            assert (a["measure"], a["n"]) == (b["measure"], b["n"])
            assert a["value"] == pytest.approx(b["value"], rel=1e-5)  # float32, other batches


def test_dry_run(isotrope: Command, bert: Path, text: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    plan = isotrope("scan", bert, "--text", text, "--dry-run", "--json").json
    assert sorted(tmp_path.rglob("*")) == before
    document = isotrope("scan", bert, "--text", text, "--json").json
    assert plan["rows"] == document["readings"][0]["n"]
    assert (plan["layers"], plan["width"]) == (4, 16)


def test_one_text_of_one_row(isotrope: Command, bert: Path) -> None:
    Path("one.txt").write_text("the cat sat\n")
    assert "one row has no geometry" in one_sentence(
        isotrope("scan", bert, "--text", "one.txt", "--pooling", "mean", "-o", "run")
    )
    assert not Path("run").exists()
