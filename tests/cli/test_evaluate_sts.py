"""isotrope evaluate sts on the command line, with a small random model and small sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from isotrope.repairs import Centering
from testkit.command import Command, one_sentence
from testkit.models import save_model, texts

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    for name, seed in (("sts-b", 0), ("sts12.a", 1), ("sts12.b", 2)):
        rng = np.random.default_rng(seed)
        pairs = zip(texts(30, seed=seed), texts(30, seed=seed + 9), strict=True)
        lines = [f"PAD\tPAD\tPAD\tPAD\t{rng.integers(0, 6)}\t{a}\t{b}\n" for a, b in pairs]
        (folder / f"{name}-test.csv").write_text("".join(lines))
    return folder


def test_json(isotrope: Command, bert: Path, sets: Path) -> None:
    result = isotrope(
        "evaluate", "sts", "--model", bert, "--data", sets, "--repair", "centering,softdecay:form=shifted", "--json"
    )
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert [(s["set"], s["repair"]) for s in document["scores"]] == [
        (name, repair)
        for name in ("sts-b", "sts12", "mean")
        for repair in ("none", "centering", "softdecay:form=shifted")
    ]
    keys = {"set", "model", "repair", "layers", "pooling", "fitted_on", "spearman", "pearson", "low", "high", "n"}
    assert keys <= document["scores"][0].keys()
    assert all(-100 <= s["low"] <= s["spearman"] <= s["high"] <= 100 for s in document["scores"])
    assert max(abs(s["spearman"]) for s in document["scores"]) > 1  # per cent
    keys = {"set", "repair", "metric", "difference", "low", "high", "p", "p_corrected", "significant"}
    assert keys <= document["differences"][0].keys()


def test_in_words(isotrope: Command, bert: Path, sets: Path) -> None:
    result = isotrope(
        "evaluate", "sts", "--model", bert, "--data", sets, "--protocol", "paper", "--repair", "centering", "--seed", 1
    )
    assert (result.code, result.err) == (0, "")
    assert f"{bert}, layers 1,-1, pooling mean" in result.out
    assert "the plain mean over a year's subsets (protocol paper); repairs fitted on each set's own" in result.out
    rows = [line.split()[0] for line in result.out.splitlines() if line.startswith(("sts", "mean"))]
    assert rows == ["sts-b", "sts12.a", "sts12.b", "sts12", "mean"]
    assert "centering: " in result.out
    assert "over all sets" in result.out
    assert "Holm's correction for 10 comparisons" in result.out


def test_a_sentence_model_is_scored_with_its_pooling_and_dense_layer(
    isotrope: Command, bert: Path, sets: Path, tmp_path: Path
) -> None:
    library = pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    torch.manual_seed(0)
    modules = [Transformer(str(bert)), Pooling(16, "cls"), Dense(16, 5)]
    model = library.SentenceTransformer(modules=modules, device="cpu")
    model.save_pretrained(str(tmp_path / "model"))
    given = ("evaluate", "sts", "--model", tmp_path / "model", "--data", sets, "--sets", "sts-b", "--json")
    (score,) = isotrope(*given).json["scores"]
    assert (score["layers"], score["pooling"]) == ("encoded", "encoded")
    table = pd.read_csv(sets / "sts-b-test.csv", sep="\t", header=None)
    first, second = (model.encode(table[column].tolist()).astype(np.float64) for column in (5, 6))
    cosine = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert score["spearman"] == pytest.approx(100 * spearmanr(cosine, table[4]).statistic, abs=0.01)
    (named,) = isotrope(*given, "--pooling", "mean").json["scores"]
    assert (named["layers"], named["pooling"]) == ("-1", "mean")


def test_files(isotrope: Command, bert: Path, sets: Path) -> None:
    common = [
        "evaluate",
        "sts",
        "--model",
        bert,
        "--data",
        sets,
        "--sets",
        "sts12.a",
        "--layers",
        "2",
        "--pooling",
        "cls",
    ]
    assert isotrope(*common, "-o", "scores.json").code == 0
    document = json.loads(Path("scores.json").read_text())
    result = isotrope(*common, "-o", "scores.csv", "--json")
    frame = pd.read_csv("scores.csv")
    assert list(frame["set"]) == ["sts12.a"]
    assert frame["spearman"][0] == pytest.approx(document["scores"][0]["spearman"])
    assert result.json["scores"] == document["scores"]
    assert (frame["layers"][0], frame["pooling"][0]) == (2, "cls")


def test_what_is_undefined_or_left_out_is_said(isotrope: Command, bert: Path, sets: Path) -> None:
    (sets / "sts12.b-test.csv").unlink()
    (sets / "sts12.a-test.csv").write_text("a\ta\t1\t1\t3\tthe cat\ta mat\na\ta\t1\t1\t\tthe cat\tdogs\n")
    result = isotrope("evaluate", "sts", "--model", bert, "--data", sets, "--repair", "centering")
    assert result.code == 0
    assert "left out of sts12: 1 pairs without a score." in result.out
    assert "a correlation needs at least two pairs, got 1." in result.out
    assert "centering: no result over all sets, because" in result.out
    assert "nan" not in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sets", "sts-c"], "did you mean 'sts-b'"),
        (["--data", "nowhere"], "there is no folder 'nowhere'"),
        (["--protocol", "simcse"], "say paper or concatenated"),
        (["--repair", "softdekay"], "did you mean 'softdecay'"),
        (["--repair", "narrow"], "is for rows of width 5, the rows here are of width 16"),
        (["--repair", "./nowhere"], "no folder './nowhere' with a saved repair"),
        (["--repair", "whitening", "--fit-text", "short.txt"], "whitening cannot be fitted on short.txt"),
        (["--fit-text", "nowhere.txt"], "there is no file 'nowhere.txt'"),
        (["--layers", "9"], "there is no layer '9'"),
        (["--pooling", "median"], "there is no pooling 'median'"),
        (["-o", "scores.xlsx"], "ends in .json or .csv"),
        (["-o", "short.txt"], "ends in .json or .csv"),
        (["-o", "there.json"], "never written over"),
        (["-o", "nowhere/scores.json"], "no folder 'nowhere'"),
    ],
)
def test_bad_input(isotrope: Command, bert: Path, sets: Path, arguments: list[str], words: str) -> None:
    Centering().fit(np.random.default_rng(0).normal(size=(9, 5))).save("narrow")
    Path("short.txt").write_text("\n".join(texts(10)))
    Path("there.json").write_text("{}")
    data = [] if "--data" in arguments else ["--data", str(sets)]
    assert words in one_sentence(isotrope("evaluate", "sts", "--model", bert, *data, *arguments))
