"""Predictions for GLUE's test rows as files that its leaderboard takes.

The leaderboard wants a zip of one tab-separated file for each task, with the header index and prediction, rows numbered
from 0 in the order of the test set, and labels by name for the tasks of entailment (https://gluebenchmark.com).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isotrope.evaluation.metrics import Vector
from isotrope.finetuning.tasks import Task
from isotrope.storage.files import write_text

#: The files of the leaderboard by task and split.
_FILES = {
    ("cola", "test"): "CoLA",
    ("sst2", "test"): "SST-2",
    ("mrpc", "test"): "MRPC",
    ("stsb", "test"): "STS-B",
    ("qqp", "test"): "QQP",
    ("mnli", "test_matched"): "MNLI-m",
    ("mnli", "test_mismatched"): "MNLI-mm",
    ("qnli", "test"): "QNLI",
    ("rte", "test"): "RTE",
}

#: Labels by name, in the order of their numbers in the data set on the hub; those of other tasks are the numbers.
_LABELS = {
    "mnli": ("entailment", "neutral", "contradiction"),
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
}

#: The range of scores of STS-B.
_LEAST, _MOST = 0.0, 5.0


def name_prediction_file(folder: Path, task: str, split: str, method: str, seed: int) -> Path:
    """The file of the predictions of one model: a folder for each method and seed, as a submission needs them."""
    return folder / f"{method.replace(':', '.')}.seed={seed}" / f"{_FILES[task, split]}.tsv"


def write_predictions(path: Path, task: Task, predicted: Vector) -> None:
    """Write the predictions of a model for all test rows of a task.

    Args:
        path: the file.
        task: the task.
        predicted: the class of each row, or a number for a task of regression, (n,).
    """
    rows = "".join(f"{index}\t{value}\n" for index, value in enumerate(format_predictions(task, predicted)))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "index\tprediction\n" + rows)


def format_predictions(task: Task, predicted: Vector) -> list[str]:
    """Format predictions as the leaderboard expects them: names of labels, numbers of classes, or scores of 0 to 5.

    >>> from isotrope.finetuning.tasks import TASKS
    >>> format_predictions(TASKS["rte"], np.array([1.0, 0.0])), format_predictions(TASKS["stsb"], np.array([5.2]))
    (['not_entailment', 'entailment'], ['5.000'])
    """
    if task.classes == 1:
        return [f"{value:.3f}" for value in np.clip(predicted, _LEAST, _MOST)]
    names = _LABELS.get(task.name, tuple(map(str, range(task.classes))))
    return [names[int(value)] for value in predicted]
