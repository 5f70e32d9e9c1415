"""A folder of small tasks that a small random model can learn: rows with certain words have label 1."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from isotrope.finetuning.tasks import TASKS
from testkit.models import WORDS

RULE = "cat"


def write_task(folder: Path, name: str, rows: int = 40, *, validation: int = 24) -> Path:
    """Write train and validation rows of a task; label 1 says that the first text holds the word of the rule."""
    task = TASKS[name]
    place = folder / "glue" / name
    place.mkdir(parents=True)
    others = [word for word in WORDS if word != RULE]
    for number, (split, count) in enumerate([("train", rows), *((split, validation) for split in task.validation)]):
        rng = np.random.default_rng([*name.encode(), number])
        with (place / f"{split}.tsv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t")
            writer.writerow([*task.columns, "label"])
            for i in range(count):
                label = i % task.classes if task.classes > 1 else round(float(rng.uniform(0, 5)), 2)
                texts = [" ".join(rng.choice(others, rng.integers(2, 9))) for _ in task.columns]
                if task.classes > 1 and label == 1:
                    texts[0] = " ".join([RULE] * 3)
                writer.writerow([*texts, label])
    return folder
