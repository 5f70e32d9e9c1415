"""Training loop: batches of texts of similar length, linear decay of learning rates, early stopping, best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.finetuning.settings import Training
from isotrope.softdecay.layer import parameter_groups
from isotrope.sources.text.encoder import Tell

Tensor: TypeAlias = torch.Tensor

#: Token ids of one text, and the other inputs of the model for each token.
Features = Mapping[str, Sequence[int]]

#: The norm at which the gradient is clipped, as usual in fine-tuning.
_MAX_GRADIENT_NORM = 1.0

#: Number of shuffled batches that are sorted by length together: little padding, and still random.
_SORTED_TOGETHER = 50


@dataclass(frozen=True)
class EncodedRows:
    """Tokenized texts, from which padded batches are made."""

    features: Sequence[Features]
    pad: int
    device: str

    def __len__(self) -> int:
        return len(self.features)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(found["input_ids"]) for found in self.features])

    def batch(self, which: Sequence[int] | NDArray[np.int64]) -> dict[str, Tensor]:
        """Make a batch of the texts of these numbers, padded at the end to the longest of them, each (b, t)."""
        selected = [self.features[i] for i in which]
        longest = max(len(found["input_ids"]) for found in selected)
        made = {}
        for key in selected[0]:
            fill = self.pad if key == "input_ids" else 0
            made[key] = torch.tensor([[*found[key], *[fill] * (longest - len(found[key]))] for found in selected])
        return {key: value.to(self.device) for key, value in made.items()}


def encode(tokenizer: Any, texts: Sequence[tuple[str, ...]], max_length: int, pad: int, device: str) -> EncodedRows:
    """Tokenize texts or pairs of texts, truncated at a length."""
    columns = [list(column) for column in zip(*texts, strict=True)]
    found = tokenizer(*columns, truncation=True, max_length=max_length, padding=False)
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in found]
    if empty := sum(not ids for ids in found["input_ids"]):
        raise InputError(f"{empty:,} of {len(texts):,} rows have no token; remove them, or use another tokenizer.")
    return EncodedRows([{name: found[name][i] for name in names} for i in range(len(texts))], pad, device)


def draw_batches(lengths: NDArray[np.int64], size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw random batches of row numbers, rows of similar length together; one batch may be smaller.

    >>> [b.tolist() for b in draw_batches(np.array([9, 1, 8, 2]), 2, np.random.default_rng(0))]
    [[3, 1], [0, 2]]
    """
    order = rng.permutation(len(lengths))
    together = size * _SORTED_TOGETHER
    parts = [part[np.argsort(-lengths[part], kind="stable")] for part in split_batches(order, together)]
    found = [part for whole in parts for part in split_batches(whole, size)]
    return (found[i] for i in rng.permutation(len(found)))


def split_batches(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Split row numbers into batches; the last one may be smaller."""
    return [order[i : i + size] for i in range(0, len(order), size)]


class Optimizer:
    """AdamW with its own learning rate for SoftDecay and a linear decay of the learning rates to 0."""

    def __init__(self, module: Any, training: Training, total: int) -> None:
        self.module, self.total, self.done = module, total, 0
        groups = parameter_groups(module, training.learning_rate, training.softdecay_learning_rate)
        self.adamw = torch.optim.AdamW(groups, weight_decay=0.0)
        self.rates = torch.optim.lr_scheduler.LambdaLR(self.adamw, lambda step: max(0.0, 1 - step / total))

    def __call__(self, loss: Tensor) -> None:
        """Take one step for a loss."""
        if not torch.isfinite(loss):
            raise InputError(f"the loss is {loss.item():g} at step {self.done + 1}; try a lower learning rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), _MAX_GRADIENT_NORM)
        self.adamw.step()
        self.rates.step()
        self.adamw.zero_grad()
        self.done += 1


@dataclass(frozen=True)
class History:
    """History of a training: loss and held-out score of each epoch, the epoch kept (from 1), the number of steps."""

    losses: list[float]
    held_out: list[float]
    epoch: int
    steps: int


def fine_tune(
    model: Any,
    rows: EncodedRows,
    labels: Tensor,
    training: Training,
    score_held_out: Callable[[], float] | None,
    rng: np.random.Generator,
    progress: Tell,
    after_step: Callable[[int], None],
) -> History:
    """Train a model with a head on rows, and restore the weights of the epoch with the best score, if there are scores.

    The learning rates decay as if all epochs were trained, also where training stops early.

    Args:
        model: model with a head, trained in place.
        rows: tokenized texts.
        labels: classes or numbers, (n,).
        training: hyperparameters.
        score_held_out: computes the score on held-out rows, after each epoch; None to keep the last epoch.
        rng: random numbers of the batches.
        progress: called with the steps done and their total.
        after_step: called with the number of steps done.
    """
    each = math.ceil(len(rows) / training.batch_size)
    step = Optimizer(model, training, each * training.epochs)
    losses, held_out = list[float](), list[float]()
    best_weights, best_epoch = dict[str, Tensor](), 0
    for epoch in range(training.epochs):
        model.train()
        total = 0.0
        for which in _draw_epoch(rows, training, rng):
            loss = model(**rows.batch(which), labels=labels[which].to(rows.device)).loss
            step(loss)
            total += loss.item() * len(which)
            after_step(step.done)
            progress(step.done, step.total)
        losses.append(total / len(rows))
        if score_held_out is None:
            continue
        held_out.append(score_held_out())
        if held_out[-1] >= max(held_out):  # of equals the later epoch, which was trained at lower rates
            best_weights = {key: value.detach().clone() for key, value in model.state_dict().items()}
            best_epoch = epoch
        if epoch - best_epoch >= training.patience:
            break
    if score_held_out is None:
        return History(losses, held_out, training.epochs, step.done)
    model.load_state_dict(best_weights)
    return History(losses, held_out, best_epoch + 1, step.done)


def _draw_epoch(rows: EncodedRows, training: Training, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw the batches of an epoch; run_glue draws rows without regard to their lengths."""
    if training.recipe == "run-glue":
        return iter(split_batches(rng.permutation(len(rows)), training.batch_size))
    return draw_batches(rows.lengths, training.batch_size, rng)


def predict(model: Any, rows: EncodedRows, batch_size: int) -> NDArray[np.float64]:
    """Predict the class of each row, or a number for a model of regression, (n,)."""
    predicted = np.empty(len(rows))
    model.eval()
    with torch.inference_mode():
        for which in split_batches(np.argsort(rows.lengths, kind="stable"), 4 * batch_size):
            logits = model(**rows.batch(which)).logits.float().cpu()
            predicted[which] = logits[:, 0] if logits.shape[1] == 1 else logits.argmax(-1)
    return predicted
