"""The tasks of GLUE: their columns and metrics, and their rows from a folder of files or from the hub.

A folder, or `glue/` in it, holds a folder for each task with `train.tsv` and `validation.tsv` (MNLI:
`validation_matched.tsv` and `validation_mismatched.tsv`): tab-separated with a header, quoted, with the columns and the
numbers of labels of the data set `nyu-mll/glue` on the hub. Test rows, `test.tsv` (MNLI: `test_matched.tsv` and
`test_mismatched.tsv`), need no labels.
"""

from __future__ import annotations

import csv
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Mean, Vector
from isotrope.registry import did_you_mean
from isotrope.sources.corpora.datasets import dataset_rows, load_split
from isotrope.storage.files import check_regular

HUB = "nyu-mll/glue"

TRAIN = "train"


@dataclass(frozen=True)
class Task:
    """A task: its columns of text, its metrics and its number of classes (1 for regression)."""

    name: str
    columns: tuple[str, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    classes: int = 2
    validation: tuple[str, ...] = ("validation",)


_PAIR = ("sentence1", "sentence2")

#: The tasks in the order of the tables of Yan et al. 2022. WNLI is left out, as usual (Devlin et al. 2019).
TASKS = {
    task.name: task
    for task in (
        Task("cola", ("sentence",), ("matthews",)),
        Task("sst2", ("sentence",)),
        Task("mrpc", _PAIR, ("accuracy", "f1")),
        Task("qnli", ("question", "sentence")),
        Task("rte", _PAIR),
        Task("mnli", ("premise", "hypothesis"), classes=3, validation=("validation_matched", "validation_mismatched")),
        Task("qqp", ("question1", "question2"), ("accuracy", "f1")),
        Task("stsb", _PAIR, ("pearson", "spearman"), classes=1),
    )
}


@dataclass(frozen=True)
class TaskRows:
    """Rows of a split: one or two texts each, and a label."""

    texts: Sequence[tuple[str, ...]] = field(repr=False)
    labels: Sequence[float] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, which: Iterable[int]) -> TaskRows:
        """Select rows by their numbers."""
        numbers = list(which)
        return TaskRows([self.texts[i] for i in numbers], [self.labels[i] for i in numbers])

    @classmethod
    def of_sentences(cls, sentences: Iterable[str]) -> TaskRows:
        """Rows of one text each, without labels."""
        texts = [(text,) for text in sentences]
        return cls(texts, [math.nan] * len(texts))

    @property
    def checksum(self) -> str:
        """Short checksum of texts and labels."""
        return f"{zlib.crc32(repr((list(self.texts), list(self.labels))).encode()):08x}"


@dataclass(frozen=True)
class TaskData:
    """A task with its training rows and its validation rows, by the name of their split."""

    task: Task
    train: TaskRows
    validation: dict[str, TaskRows]


def read_tasks(names: Sequence[str] | None, data: str | Path | None) -> list[TaskData]:
    """Read tasks.

    Args:
        names: names of tasks, by default all that are there.
        data: a folder; None for the folder ISOTROPE_DATA, or else the hub.
    """
    for name in names or ():
        if name not in TASKS:
            raise InputError(f"there is no task {name!r}{did_you_mean(name, TASKS)}; there are {', '.join(TASKS)}.")
    folder = find_glue_folder(data)
    there = list(TASKS) if folder is None else [name for name in TASKS if (folder / name).is_dir()]
    if not there:
        raise InputError(f"{str(folder)!r} holds no task; expected folders such as {Path('rte') / 'train.tsv'}.")
    return [read_task(name, folder) for name in dict.fromkeys(names or there)]


def find_glue_folder(data: str | Path | None) -> Path | None:
    """Find the folder that holds the folders of tasks; None for the hub."""
    root = data or os.environ.get("ISOTROPE_DATA")
    if root is None:
        return None
    if not Path(root).is_dir():
        raise InputError(f"there is no folder {str(root)!r}; give the one that holds the tasks, such as glue.")
    inside = Path(root) / "glue"
    return inside if inside.is_dir() else Path(root)


def read_task(name: str, folder: Path | None) -> TaskData:
    """Read a task from its folder, or from the hub."""
    task = TASKS[name]
    train, *scored = (_read_split(task, split, folder) for split in (TRAIN, *task.validation))
    return TaskData(task, train, dict(zip(task.validation, scored, strict=True)))


def read_test_rows(task: Task, data: str | Path | None) -> dict[str, TaskRows]:
    """Read the test rows of a task, whose labels are secret, by the names of their splits; labels are NaN."""
    folder = find_glue_folder(data)
    splits = [split.replace("validation", "test") for split in task.validation]
    return {split: _read_split(task, split, folder, labelled=False) for split in splits}


def _read_split(task: Task, split: str, folder: Path | None, *, labelled: bool = True) -> TaskRows:
    """Read and check the rows of a split."""
    found: Iterator[tuple[str, dict[str, Any]]]
    if folder is None:
        address = f"{HUB}:{task.name}"
        data, _ = load_split(address, split)
        found = ((f"row {i} of {address}, {split},", row) for i, row in dataset_rows(data, address))
    else:
        address = str(folder / task.name / f"{split}.tsv")
        found = _read_lines(Path(address))
    texts, labels = [], []
    for where, row in found:
        needed = (*task.columns, "label") if labelled else task.columns
        absent = [column for column in needed if row.get(column) is None]
        if absent:
            raise InputError(f"{where} has no {absent[0]}; {task.name} needs {', '.join(needed)}.")
        texts.append(tuple(str(row[column]) for column in task.columns))
        labels.append(_parse_label(row["label"], task, where) if labelled else math.nan)
    if not texts:
        raise InputError(f"{address} has no row; check the file.")
    return TaskRows(texts, labels)


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    check_regular(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t", strict=True)
            for row in reader:
                yield f"line {reader.line_num} of {str(path)!r}", row
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}; give a folder that holds it with --data.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{str(path)!r} cannot be read as tab-separated text ({error}); check the file.") from error


def _parse_label(label: Any, task: Task, where: str) -> float:
    """Parse a label; unknown labels raise InputError, and so does −1, the hub's label of hidden test rows."""
    expected = "a number" if task.classes == 1 else f"0 to {task.classes - 1}"
    try:
        value = float(label)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or (task.classes > 1 and value not in range(task.classes)):
        raise InputError(f"{where} has the label {label!r}, expected {expected}.")
    return value


def accuracy(predicted: Vector, labels: Vector) -> float:
    """Share of rows whose label is predicted."""
    return Mean(np.equal(predicted, labels)).value


def f1(predicted: Vector, labels: Vector) -> float:
    """Harmonic mean of precision and recall of class 1; 0 where neither predictions nor labels contain it.

    >>> f1(np.array([1, 1, 0]), np.array([1, 0, 1]))
    0.5
    """
    hits = np.count_nonzero((predicted == 1) & (labels == 1))
    named = np.count_nonzero(predicted == 1) + np.count_nonzero(labels == 1)
    return float(2 * hits / named) if named else 0.0


def matthews(predicted: Vector, labels: Vector) -> float:
    """Correlation of predicted and true labels 0 and 1; 0 where one of them is constant (Matthews 1975).

    >>> matthews(np.array([1, 1, 0, 0]), np.array([1, 1, 0, 1])).__round__(4)
    0.5774
    """
    if np.ptp(predicted) == 0 or np.ptp(labels) == 0:
        return 0.0
    return float(np.corrcoef(predicted, labels)[0, 1])


#: Metrics of classification by name.
_CLASS_METRICS = {"accuracy": accuracy, "f1": f1, "matthews": matthews}


def compute_score(metric: str, predicted: Vector, labels: Sequence[float]) -> float:
    """Compute a metric by name, (n,) and (n,) -> a number; NaN where a correlation is undefined."""
    gold = np.asarray(labels, dtype=np.float64)
    if metric in CORRELATIONS:
        return Correlation(predicted, gold, metric).value
    return _CLASS_METRICS[metric](predicted, gold)


def average_scores(scores: Iterable[float]) -> float:
    """Average the scores of a task as GLUE does; −inf where one is undefined."""
    found = float(np.mean(list(scores)))
    return found if math.isfinite(found) else -math.inf
