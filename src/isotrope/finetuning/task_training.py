"""One run of GLUE: a model with a new head, fine-tuned by one method on one task with one seed; and its cost."""

from __future__ import annotations

import copy
import math
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

import isotrope.nn as nn
from isotrope.errors import InputError
from isotrope.finetuning.encoder_pretraining import Encode, pretrain_encoder
from isotrope.finetuning.loop import EncodedRows, encode, fine_tune, predict
from isotrope.finetuning.runs import GlueRun
from isotrope.finetuning.settings import Method, Training
from isotrope.finetuning.tasks import Task, TaskData, TaskRows, average_scores, compute_score
from isotrope.finetuning.token_spectra import compute_spectra
from isotrope.formats.json import to_plain
from isotrope.softdecay.attach import copy_layer
from isotrope.sources.models.environment import silence_transformers
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.encoder import Tell

#: The share of training rows that is held out to select epoch and α, and the maximum.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 1000

#: Validation rows whose spectra are computed.
_SPECTRUM_ROWS = 256

#: About the number of points of α that are recorded.
_ALPHA_POINTS = 100


class RowSplit(NamedTuple):
    """Numbers of the training rows of a seed: to train on, and held out."""

    train: list[int]
    held_out: list[int]


def split_rows(count: int, training: Training, rng: np.random.Generator) -> RowSplit:
    """Split training rows in random order, a tenth of them held out, none in the recipe "run-glue".

    >>> [len(part) for part in split_rows(2490, Training(), np.random.default_rng(0))]
    [2241, 249]
    """
    order = rng.permutation(count)[: training.train_rows].tolist()
    if training.recipe == "run-glue":
        return RowSplit(order, [])
    count_held_out = min(math.ceil(_HELD_OUT * len(order)), _MOST_HELD_OUT)
    if len(order) - count_held_out < 2:
        raise InputError(f"got {len(order)} training rows, expected at least 3: a tenth of them is held out.")
    return RowSplit(order[count_held_out:], order[:count_held_out])


def compute_pretrained_spectrum(loaded: Loaded, data: TaskData, training: Training) -> dict[str, Any]:
    """Compute the spectrum of the last hidden states of the model on validation rows, before training."""
    return compute_spectra(loaded.model, _encode_validation(loaded, data, training), training.batch_size)["last"]


class TrainedModel(NamedTuple):
    """A fine-tuned model, what is recorded of its training, and what tokenizes texts for it."""

    model: Any
    run: GlueRun
    encode: Encode


def train(
    loaded: Loaded,
    data: TaskData,
    method: Method,
    seed: int,
    training: Training,
    first: TaskRows | None,
    progress: Callable[[str], Tell],
) -> TrainedModel:
    """Fine-tune a copy of a model once and score it.

    Args:
        first: rows for the pretraining as a sentence encoder, None for those of the task itself.
        progress: gives the function to call with steps done and their total, by the name of a stage.
    """
    start, task = time.perf_counter(), data.task
    make_rng = partial(_make_rng, seed, task.name)
    parts = split_rows(len(data.train), training, make_rng("split"))
    encoder = partial(encode, loaded.tokenizer, max_length=training.max_length, pad=loaded.pad, device=loaded.device)
    rows, held_out = data.train.take(parts.train), data.train.take(parts.held_out)
    layer, alphas = None, list[tuple[int, float]]()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = add_head(loaded, task)
        if method.alpha is not None:
            layer = nn.attach(model, method.alpha, training.softdecay_form, block=method.block)
            alphas.append((0, layer.alpha))
        if method.first is not None:
            examples = _select_examples(method.first, first, rows, training, make_rng("pairs"))
            stage = progress("first stage")
            pretrain_encoder(method.first, model.base_model, encoder, examples, training, make_rng("first"), stage)
        if method.expdecay:
            nn.regularize(model, nn.ExpDecay())
        torch.manual_seed(seed)  # the same dropout for all methods, as far as they use random numbers alike
        history = fine_tune(
            model,
            encoder(rows.texts),
            _label_tensor(task, rows),
            training,
            _make_scorer(model, encoder(held_out.texts), task, held_out, training) if len(held_out) else None,
            make_rng("order"),
            progress("training"),
            _make_alpha_recorder(layer, alphas, len(rows), training),
        )
    run = GlueRun(
        task.name,
        method.name,
        seed,
        to_plain(_score_validation(model, encoder, data, training)),
        to_plain(history.held_out),
        history.epoch,
        history.losses,
        history.steps,
        round(time.perf_counter() - start, 1),
        {"train": len(rows), "held_out": len(held_out)} | {name: len(rows) for name, rows in data.validation.items()},
        alphas,
        _compute_trained_spectra(loaded, model, data, training, layer),
    )
    return TrainedModel(model, run, encoder)


def _compute_trained_spectra(
    loaded: Loaded, model: Any, data: TaskData, training: Training, layer: Any
) -> dict[str, dict[str, Any]]:
    """Compute the spectra of a fine-tuned model on validation rows. layer: its SoftDecay layer, None for none."""
    rows = _encode_validation(loaded, data, training)
    spectra = compute_spectra(model.base_model, rows, training.batch_size, layer)
    return {"trained" if name == "last" else name: spectrum for name, spectrum in spectra.items()}


def add_head(loaded: Loaded, task: Task) -> Any:
    """Add a new head for the labels of a task to a model, in float32; the weights of the head are random."""
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(loaded.model.config)
    config.num_labels, config.pad_token_id = task.classes, loaded.pad
    config.problem_type = "regression" if task.classes == 1 else "single_label_classification"
    try:
        with silence_transformers():
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


def estimate_seconds(loaded: Loaded, tasks: Sequence[TaskData], training: Training) -> float:
    """Estimate the seconds of plain fine-tuning on all tasks, from one training batch and one prediction of each."""
    return sum(_estimate_task_seconds(loaded, data, training) for data in tasks)


def _estimate_task_seconds(loaded: Loaded, data: TaskData, training: Training) -> float:
    count = min(len(data.train), training.train_rows or len(data.train))
    rows = data.train.take(np.random.default_rng(0).permutation(len(data.train))[: training.batch_size].tolist())
    encoded = encode(loaded.tokenizer, rows.texts, training.max_length, loaded.pad, loaded.device)
    labels = _label_tensor(data.task, rows).to(loaded.device)
    with torch.random.fork_rng():
        model = add_head(loaded, data.task)
    start = time.perf_counter()
    model(**encoded.batch(range(len(rows))), labels=labels).loss.backward()
    trained = time.perf_counter()
    predict(model, encoded, training.batch_size)
    step_seconds, prediction_seconds = trained - start, time.perf_counter() - trained
    validation = sum(map(len, data.validation.values()))
    steps = training.epochs * math.ceil(count / len(rows))
    return steps * step_seconds + validation / len(rows) * prediction_seconds


def _label_tensor(task: Task, rows: TaskRows) -> torch.Tensor:
    return torch.tensor(rows.labels, dtype=torch.float32 if task.classes == 1 else torch.long)


def _encode_validation(loaded: Loaded, data: TaskData, training: Training) -> EncodedRows:
    """Tokenize the validation rows whose spectra are computed."""
    texts = next(iter(data.validation.values())).texts[:_SPECTRUM_ROWS]
    return encode(loaded.tokenizer, texts, training.max_length, loaded.pad, loaded.device)


def _select_examples(
    method: str, first: TaskRows | None, rows: TaskRows, training: Training, rng: np.random.Generator
) -> TaskRows:
    """Select the rows for the pretraining: the given ones, or the training rows of the task, never held-out ones."""
    if first is not None:
        return first.take(rng.permutation(len(first))[: training.train_rows].tolist())
    return rows if method == "sbert" else TaskRows.of_sentences(text for texts in rows.texts for text in texts)


def _make_scorer(
    model: Any, encoded: EncodedRows, task: Task, rows: TaskRows, training: Training
) -> Callable[[], float]:
    """A function that computes the score on held-out rows."""
    return lambda: average_scores(_compute_scores(task, predict(model, encoded, training.batch_size), rows).values())


def _make_alpha_recorder(
    layer: Any, alphas: list[tuple[int, float]], rows: int, training: Training
) -> Callable[[int], None]:
    """A function that appends α to a list after some of the steps."""
    interval = max(1, math.ceil(rows / training.batch_size) * training.epochs // _ALPHA_POINTS)

    def record(step: int) -> None:
        if layer is not None and step % interval == 0:
            alphas.append((step, layer.alpha))

    return record


def _score_validation(model: Any, encoder: Encode, data: TaskData, training: Training) -> dict[str, float]:
    """Compute the scores on all validation splits, by metric."""
    scores = dict[str, float]()
    for name, rows in data.validation.items():
        predicted = predict(model, encoder(rows.texts), training.batch_size)
        ending = "_mismatched" if name.endswith("mismatched") else ""
        found = _compute_scores(data.task, predicted, rows)
        scores |= {metric + ending: value for metric, value in found.items()}
    return scores


def _compute_scores(task: Task, predicted: Any, rows: TaskRows) -> dict[str, float]:
    return {metric: compute_score(metric, predicted, rows.labels) for metric in task.metrics}


def _make_rng(seed: int, task: str, what: str) -> np.random.Generator:
    """Random numbers of a seed and a task, the same for all methods."""
    return np.random.default_rng([seed, zlib.crc32(f"{task} {what}".encode())])
