"""The tasks of GLUE: which columns are read, what is scored, and their rows from a folder of files or from the hub.

A folder, or `glue/` in it, holds a folder for each task with `train.tsv` and `validation.tsv` (MNLI:
`validation_matched.tsv` and `validation_mismatched.tsv`): tab-separated below a header, quoted, with the columns and
the label numbers of the hub's set `nyu-mll/glue`.
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

from isotrope.errors import InputError
from isotrope.sources.corpora.columns import did_you_mean
from isotrope.sources.corpora.datasets import dataset_rows, load_split
from isotrope.storage.regular_files import check_regular

HUB = "nyu-mll/glue"

TRAIN = "train"


@dataclass(frozen=True)
class Task:
    """A task: its columns of text, what is scored, how many classes there are (1: a number is to be said)."""

    name: str
    columns: tuple[str, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    classes: int = 2
    validation: tuple[str, ...] = ("validation",)


_PAIR = ("sentence1", "sentence2")

#: The tasks in the order of the paper's tables. WNLI is left out, as everywhere (Devlin et al. 2019).
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
class Rows:
    """The rows of a split: one or two texts each, and a label."""

    texts: Sequence[tuple[str, ...]] = field(repr=False)
    labels: Sequence[float] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, which: Iterable[int]) -> Rows:
        """The rows of these numbers."""
        chosen = list(which)
        return Rows([self.texts[i] for i in chosen], [self.labels[i] for i in chosen])

    @property
    def checksum(self) -> str:
        """A short name of what the rows hold."""
        return f"{zlib.crc32(repr((list(self.texts), list(self.labels))).encode()):08x}"


@dataclass(frozen=True)
class TaskData:
    """A task with its training rows and the rows that it is scored on, by the name of their split."""

    task: Task
    train: Rows
    validation: dict[str, Rows]


def read_tasks(names: Sequence[str] | None, data: str | Path | None) -> list[TaskData]:
    """The tasks of these names, by default all that are there.

    data: a folder; None for that of ISOTROPE_DATA, and without that the hub.
    """
    for name in names or ():
        if name not in TASKS:
            raise InputError(f"there is no task {name!r}{did_you_mean(name, TASKS)}; there are {', '.join(TASKS)}.")
    folder = glue_folder(data)
    there = list(TASKS) if folder is None else [name for name in TASKS if (folder / name).is_dir()]
    if not there:
        raise InputError(f"{str(folder)!r} holds no task; expected folders such as {Path('rte') / 'train.tsv'}.")
    return [read_task(name, folder) for name in dict.fromkeys(names or there)]


def glue_folder(data: str | Path | None) -> Path | None:
    """The folder that holds the tasks' folders, None for the hub."""
    place = data or os.environ.get("ISOTROPE_DATA")
    if place is None:
        return None
    if not Path(place).is_dir():
        raise InputError(f"there is no folder {str(place)!r}; give the one that holds the tasks, such as glue.")
    inside = Path(place) / "glue"
    return inside if inside.is_dir() else Path(place)


def read_task(name: str, folder: Path | None) -> TaskData:
    """A task from its folder, or from the hub."""
    task = TASKS[name]
    train, *scored = (_read(task, split, folder) for split in (TRAIN, *task.validation))
    return TaskData(task, train, dict(zip(task.validation, scored, strict=True)))


def _read(task: Task, split: str, folder: Path | None) -> Rows:
    found: Iterator[tuple[str, dict[str, Any]]]
    if folder is None:
        place = f"{HUB}:{task.name}"
        data, _ = load_split(place, split)
        found = ((f"row {i} of {place}, {split},", row) for i, row in dataset_rows(data, place))
    else:
        place = str(folder / task.name / f"{split}.tsv")
        found = _lines(Path(place))
    texts, labels = [], []
    for where, row in found:
        absent = [column for column in (*task.columns, "label") if row.get(column) is None]
        if absent:
            raise InputError(f"{where} has no {absent[0]}; {task.name} needs {', '.join(task.columns)} and label.")
        texts.append(tuple(str(row[column]) for column in task.columns))
        labels.append(_label(row["label"], task, where))
    if not texts:
        raise InputError(f"{place} has no row; check the file.")
    return Rows(texts, labels)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
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


def _label(label: Any, task: Task, where: str) -> float:
    """A label as a number; what it cannot be is refused, as are the hub's −1 for labels that are kept secret."""
    expected = "a number" if task.classes == 1 else f"0 to {task.classes - 1}"
    try:
        value = float(label)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or (task.classes > 1 and value not in range(task.classes)):
        raise InputError(f"{where} has the label {label!r}, expected {expected}.")
    return value
