"""About how long fine-tuning on GLUE tasks takes, by one step of each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import torch

from isotrope.finetuning.loop import encode, predict
from isotrope.finetuning.settings import Training
from isotrope.finetuning.task_training import with_head
from isotrope.finetuning.tasks import TaskData
from isotrope.sources.models.load import Loaded


def fine_tuning_seconds(loaded: Loaded, tasks: Sequence[TaskData], training: Training) -> float:
    """Seconds of one plain fine-tuning on every task, from one batch of it forwards and backwards, and forwards."""
    return sum(_seconds(loaded, data, training) for data in tasks)


def _seconds(loaded: Loaded, data: TaskData, training: Training) -> float:
    count = min(len(data.train), training.train_rows or len(data.train))
    chosen = np.random.default_rng(0).permutation(len(data.train))[: training.batch_size].tolist()
    rows = data.train.take(chosen)
    encoded = encode(loaded.tokenizer, rows.texts, training.max_length, loaded.pad, loaded.device)
    labels = torch.tensor(rows.labels, dtype=torch.float32 if data.task.classes == 1 else torch.long)
    with torch.random.fork_rng():
        model = with_head(loaded, data.task)
    begin = time.perf_counter()
    model(**encoded.batch(range(len(rows))), labels=labels.to(loaded.device)).loss.backward()
    middle = time.perf_counter()
    predict(model, encoded, training.batch_size)
    step, said = middle - begin, time.perf_counter() - middle
    scored = sum(map(len, data.validation.values()))
    return training.epochs * math.ceil(count / len(rows)) * step + scored / len(rows) * said
