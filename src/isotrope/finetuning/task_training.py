"""One run of GLUE: a model of transformers with a new head, trained by one method on one task with one seed."""

from __future__ import annotations

import copy
import math
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from isotrope import nn
from isotrope.errors import InputError
from isotrope.finetuning.encoder_pretraining import sentence_stage
from isotrope.finetuning.loop import Encoded, Tell, encode, fine_tune, predict
from isotrope.finetuning.methods import Method
from isotrope.finetuning.runs import GlueRun
from isotrope.finetuning.settings import Training
from isotrope.finetuning.task_metrics import score, task_score
from isotrope.finetuning.tasks import Rows, Task, TaskData
from isotrope.finetuning.token_spectra import spectra
from isotrope.formats.json import to_plain
from isotrope.softdecay.attach import copy_layer
from isotrope.sources.models.load import Loaded, quiet

#: The share of training rows that is held out to choose epoch and α by, and how many at most.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 1000

#: Validation rows whose spectra are taken.
_PROBE = 256

#: Points of α's path that are kept, about.
_PATH = 100


class Split(NamedTuple):
    """The training rows of a seed: those to train on and those held out, by their numbers."""

    train: list[int]
    held_out: list[int]


def split(count: int, train_rows: int | None, rng: np.random.Generator) -> Split:
    """Training rows in random order, as many as asked for, a tenth of them held out.

    >>> [len(part) for part in split(2490, None, np.random.default_rng(0))]
    [2241, 249]
    """
    order = rng.permutation(count)[:train_rows].tolist()
    held = min(math.ceil(_HELD_OUT * len(order)), _MOST_HELD_OUT)
    if len(order) - held < 2:
        raise InputError(f"got {len(order)} training rows, expected at least 3: a tenth of them is held out.")
    return Split(order[held:], order[:held])


def pretrained_spectra(loaded: Loaded, data: TaskData, training: Training) -> dict[str, Any]:
    """The spectrum of the model's last hidden states on validation rows, before anything is trained."""
    return spectra(loaded.model, _probe(loaded, data, training), training.batch_size)["last"]


def train(
    loaded: Loaded,
    data: TaskData,
    method: Method,
    seed: int,
    training: Training,
    pairs: TaskData | None,
    told: Callable[[str], Tell],
) -> GlueRun:
    """Train once and score. pairs: what S-BERT learns from first. told: of a stage by its name."""
    begin, task = time.perf_counter(), data.task
    random = partial(_random, seed, task.name)
    parts = split(len(data.train), training.train_rows, random("split"))
    encoder = partial(encode, loaded.tokenizer, max_length=training.max_length, pad=loaded.pad, device=loaded.device)
    rows, held_out = data.train.take(parts.train), data.train.take(parts.held_out)
    held = encoder(held_out.texts)
    layer, alphas = None, list[tuple[int, float]]()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = with_head(loaded, task)
        if method.alpha is not None:
            layer = nn.attach(model, method.alpha, block=method.block)
            alphas.append((0, layer.alpha))
        if method.first is not None:
            sentences = [text for texts in rows.texts for text in texts]
            labelled = None if pairs is None else _pairs_of(pairs, data, parts, training, random("pairs"))
            sentence_stage(
                method.first,
                model.base_model,
                encoder,
                sentences,
                labelled,
                training,
                random("first"),
                told("first stage"),
            )
        if method.expdecay:
            nn.regularize(model, nn.ExpDecay())
        torch.manual_seed(seed)  # the same dropout for all methods, as far as they draw alike
        every = max(1, math.ceil(len(rows) / training.batch_size) * training.epochs // _PATH)

        def after_step(step: int) -> None:
            if layer is not None and step % every == 0:
                alphas.append((step, layer.alpha))

        labels = torch.tensor(rows.labels, dtype=torch.float32 if task.classes == 1 else torch.long)
        found = fine_tune(
            model,
            encoder(rows.texts),
            labels,
            training,
            lambda: task_score(list(_scores(task, predict(model, held, training.batch_size), held_out).values())),
            random("order"),
            told("training"),
            after_step,
        )
    scores = dict[str, float]()
    for name, validation in data.validation.items():
        said = predict(model, encoder(validation.texts), training.batch_size)
        ending = "_mismatched" if name.endswith("mismatched") else ""
        scores |= {metric + ending: value for metric, value in _scores(task, said, validation).items()}
    after = spectra(model.base_model, _probe(loaded, data, training), training.batch_size, layer)
    return GlueRun(
        task.name,
        method.name,
        seed,
        {metric: to_plain(value) for metric, value in scores.items()},
        [to_plain(value) for value in found.held_out],
        found.epoch,
        found.losses,
        found.steps,
        round(time.perf_counter() - begin, 1),
        {"train": len(rows), "held_out": len(held_out)} | {name: len(rows) for name, rows in data.validation.items()},
        alphas,
        {"trained" if name == "last" else name: spectrum for name, spectrum in after.items()},
    )


def with_head(loaded: Loaded, task: Task) -> Any:
    """The model with a new head for a task's labels, in float32; the head's weights are random."""
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(loaded.model.config)
    config.num_labels, config.pad_token_id = task.classes, loaded.pad
    config.problem_type = "regression" if task.classes == 1 else "single_label_classification"
    try:
        with quiet():
            model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    except ValueError as error:
        raise InputError(
            f"transformers has no head for classes for {type(loaded.model).__name__}; use a model that has one."
        ) from error
    copy_layer(loaded.model, model)
    weights = {name: value.float() for name, value in loaded.model.state_dict().items()}
    missing = model.base_model.load_state_dict(weights, strict=False).missing_keys
    if missing:
        raise InputError(
            f"the weights of {loaded.name!r} lack {len(missing):,} that its model with a head needs (such as "
            f"{missing[0]}); use another model."
        )
    return model.to(loaded.device)


def _probe(loaded: Loaded, data: TaskData, training: Training) -> Encoded:
    texts = next(iter(data.validation.values())).texts[:_PROBE]
    return encode(loaded.tokenizer, texts, training.max_length, loaded.pad, loaded.device)


def _pairs_of(pairs: TaskData, data: TaskData, parts: Split, training: Training, rng: np.random.Generator) -> Rows:
    """The labelled pairs of S-BERT's first stage; where they are the task's own, held-out rows are not among them."""
    if pairs.task == data.task:
        return data.train.take(parts.train)
    return pairs.train.take(rng.permutation(len(pairs.train))[: training.train_rows].tolist())


def _scores(task: Task, said: Any, rows: Rows) -> dict[str, float]:
    return {metric: score(metric, said, rows.labels) for metric in task.metrics}


def _random(seed: int, task: str, what: str) -> np.random.Generator:
    """Random numbers of a seed and a task: the same ones for all methods."""
    return np.random.default_rng([seed, zlib.crc32(f"{task} {what}".encode())])
