"""isotrope evaluate glue: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from isotrope.finetuning.runs import GlueRun, write_run
from testkit.command import Command, one_sentence
from testkit.models import save_model, texts


def spectrum(median: float) -> dict[str, Any]:
    return {"sequences": 2, "skewness": 1.0, "median": median, "reach": 0.5, "vanished": 0.0, "cdf": [0.0, 0.5, 1.0]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Runs of five seeds that were trained elsewhere: SoftDecay gains two to three points on RTE."""
    place = tmp_path / "done"
    settings = {"model": "some-model", "epochs": 3, "batch_size": 32, "learning_rate": 2e-5}
    for seed in range(5):
        for method, gain in (("base", 0.0), ("softdecay:alpha=-0.5", 0.02 + 0.002 * seed)):
            alphas = [(0, -0.5), (9, -0.4)] if gain else []
            spectra = {"pretrained": spectrum(0.1), "trained": spectrum(0.3 if gain else 0.2)}
            scores: dict[str, float | None] = {"accuracy": 0.6 + gain + 0.01 * seed}
            run = GlueRun("rte", method, seed, scores, [0.6], 1, [0.5], 9, 1.0, {"train": 9}, alphas, spectra, settings)
            write_run(place, run)
    return place


def test_what_a_folder_holds_is_shown(isotrope: Command, folder: Path) -> None:
    result = isotrope("evaluate", "glue", "-o", folder, "--show")
    assert result.code == 0, result.err
    for words in (
        "some-model, fine-tuned",
        "softdecay:alpha=-0.5",
        "62.00",  # the base's mean
        "1.58",  # its deviation
        "+2.40*",
        "α from -0.500 to -0.400",
        "0.100 before training, 0.300 after",
        "paired t-test over seeds",
    ):
        assert words in result.out
    found = isotrope("evaluate", "glue", "-o", folder, "--show", "--json").json
    assert [score["mean"] for score in found["scores"]] == pytest.approx([62.0, 64.4])
    (difference,) = found["differences"]
    assert difference["p_permutation"] == 1 / 16
    assert difference["relative"] == pytest.approx(100 * 2.4 / 62)
    assert len(found["runs"]) == 10


def test_training_prints_one_json_document_and_fills_the_folder(isotrope: Command, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = save_model(tmp_path / "bert", "bert")
    (tmp_path / "data" / "cola").mkdir(parents=True)
    for split, count in (("train", 20), ("validation", 8), ("test", 5)):
        with (tmp_path / "data" / "cola" / f"{split}.tsv").open("w", newline="") as file:
            rows = csv.writer(file, delimiter="\t")
            rows.writerows([["sentence", "label"], *([text, i % 2] for i, text in enumerate(texts(count, longest=6)))])
    asked = ("evaluate", "glue", "--model", model, "--data", tmp_path / "data", "--alpha", "-0.5", "--seeds", "1")
    asked = (*asked, "--epochs", "1", "--batch-size", "8", "--device", "cpu", "-o", "run")
    result = isotrope(*asked, "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    assert [score["method"] for score in result.json["scores"]] == ["base", "softdecay:alpha=-0.5"]
    assert result.json["provenance"]["settings"]["batch_size"] == 8
    assert json.loads(Path("run/glue.json").read_text())["scores"] == result.json["scores"]
    assert "already holds 2 runs" in one_sentence(isotrope(*asked))
    again = isotrope(*asked, "--resume")
    assert again.code == 0, again.err
    assert "Results: run/" in again.out
    changed = ("--recipe", "run-glue", "--softdecay-form", "paper", "--predictions", "predicted")
    other = isotrope(*asked[:-1], "other", *changed)
    assert other.code == 0, other.err
    assert "last epoch." in other.out
    assert "Predictions of the test rows: predicted/" in other.out
    lines = Path("predicted/softdecay.alpha=-0.5.seed=0/CoLA.tsv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("index\tprediction", 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--show"], "name it with -o"),
        (["--resume"], "name it with -o"),
        (["--show", "-o", "nosuch"], "holds no runs"),
        (["--alpha", "x"], "--alpha 'x'"),
        (["--tasks", "wnli"], "no task 'wnli'"),
        (["--data", "nosuch"], "nosuch"),
        (["--batch-size", "0"], "batch size is 0"),
        (["--recipe", "glue"], "no recipe 'glue'"),
        (["--softdecay-form", "papr"], "no form 'papr'"),
    ],
)
def test_what_cannot_be_followed_is_refused(isotrope: Command, options: list[str], words: str) -> None:
    assert words in one_sentence(isotrope("evaluate", "glue", *options))
