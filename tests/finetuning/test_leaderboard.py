"""Files of predictions as GLUE's leaderboard takes them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.finetuning.leaderboard import format_predictions, name_prediction_file
from isotrope.finetuning.tasks import TASKS
from testkit.small_glue import write_task

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "max_length": 24, "learning_rate": 1e-3, "device": "cpu"}

#: The file names of https://gluebenchmark.com/faq, for the tasks that there are here.
NAMES = {
    "cola": ["CoLA.tsv"],
    "sst2": ["SST-2.tsv"],
    "mrpc": ["MRPC.tsv"],
    "stsb": ["STS-B.tsv"],
    "qqp": ["QQP.tsv"],
    "mnli": ["MNLI-m.tsv", "MNLI-mm.tsv"],
    "qnli": ["QNLI.tsv"],
    "rte": ["RTE.tsv"],
}


def write_test_rows(folder: Path, name: str, count: int, *, label: str | None) -> None:
    """Test rows of a task, with the label −1 of the hub or without the column."""
    task = TASKS[name]
    for split in task.validation:
        with (folder / "glue" / name / f"{split.replace('validation', 'test')}.tsv").open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t")
            writer.writerow([*task.columns, *(["label"] if label else [])])
            for i in range(count):
                writer.writerow([*(f"the cat {i}" for _ in task.columns), *([label] if label else [])])


def read_predictions(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


@pytest.mark.parametrize("task", TASKS)
def test_files_have_the_names_of_the_leaderboard(task: str) -> None:
    splits = [split.replace("validation", "test") for split in TASKS[task].validation]
    assert [name_prediction_file(Path("p"), task, split, "base", 0).name for split in splits] == NAMES[task]
    assert name_prediction_file(Path("p"), task, splits[0], "softdecay:alpha=-0.5", 3).parts[1] == (
        "softdecay.alpha=-0.5.seed=3"
    )


def test_labels_are_those_of_each_task() -> None:
    classes = np.array([0.0, 1.0])
    assert format_predictions(TASKS["qnli"], classes) == ["entailment", "not_entailment"]
    assert format_predictions(TASKS["rte"], classes) == ["entailment", "not_entailment"]
    three = format_predictions(TASKS["mnli"], np.array([0.0, 1.0, 2.0]))
    assert three == ["entailment", "neutral", "contradiction"]
    for name in ("cola", "sst2", "mrpc", "qqp"):
        assert format_predictions(TASKS[name], classes) == ["0", "1"]
    assert format_predictions(TASKS["stsb"], np.array([-0.3, 2.34567, 7.0])) == ["0.000", "2.346", "5.000"]


def test_every_model_predicts_all_test_rows(bert: Path, tmp_path: Path) -> None:
    for name, label in (("rte", "-1"), ("mnli", None)):
        write_task(tmp_path, name)
        write_test_rows(tmp_path, name, 7, label=label)
    asked = {"model": bert, "data": tmp_path, "tasks": ["rte", "mnli"], "methods": [], "seeds": 2, **QUICK}
    place, output = tmp_path / "predictions", tmp_path / "run"
    isotrope.evaluate_glue(**asked, predictions=place, output=output)
    for seed in range(2):
        for name in ("RTE", "MNLI-m", "MNLI-mm"):
            header, *rows = read_predictions(place / f"base.seed={seed}" / f"{name}.tsv")
            assert header == ["index", "prediction"]
            assert [row[0] for row in rows] == [str(i) for i in range(7)]
            labels = {"entailment", "not_entailment"} if name == "RTE" else {"entailment", "neutral", "contradiction"}
            assert {row[1] for row in rows} <= labels
    # Predictions that were lost are made again, and the run stays the same.
    lost = place / "base.seed=1" / "RTE.tsv"
    before, run = lost.read_text(), (output / "runs" / "rte.base.seed=1.json").read_text()
    lost.unlink()
    isotrope.evaluate_glue(**asked, predictions=place, output=output, resume=True)
    assert lost.read_text() == before
    assert (output / "runs" / "rte.base.seed=1.json").read_text().partition('"seconds"')[0] == (
        run.partition('"seconds"')[0]
    )


def test_predictions_without_test_rows_are_refused_before_training(bert: Path, tmp_path: Path) -> None:
    write_task(tmp_path, "rte")
    with pytest.raises(InputError, match=r"test\.tsv"):
        isotrope.evaluate_glue(model=bert, data=tmp_path, methods=[], predictions=tmp_path / "p", seeds=1, **QUICK)
    assert not (tmp_path / "p").exists()
