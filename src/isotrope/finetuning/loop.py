"""A plain training loop: texts of like length together, little padding, linear decay, the best epoch kept."""

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

Tensor: TypeAlias = torch.Tensor

#: The ids of one text, with what else the model takes of each token.
Features = Mapping[str, Sequence[int]]

#: Called with the steps done so far, and their number.
Tell = Callable[[int, int], None]

#: The length of the gradient at which it is cut, as everywhere in fine-tuning.
_LONGEST_GRADIENT = 1.0

#: Batches that are shuffled together and then sorted by length: enough for little padding, and still random.
_SORTED_TOGETHER = 50


@dataclass(frozen=True)
class Encoded:
    """Texts as token ids, and how to make batches of them."""

    features: Sequence[Features]
    pad: int
    device: str

    def __len__(self) -> int:
        return len(self.features)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(found["input_ids"]) for found in self.features])

    def batch(self, which: Sequence[int] | NDArray[np.int64]) -> dict[str, Tensor]:
        """The texts of these numbers, padded at the end to the longest of them, each (b, t)."""
        chosen = [self.features[i] for i in which]
        longest = max(len(found["input_ids"]) for found in chosen)
        made = {}
        for key in chosen[0]:
            fill = self.pad if key == "input_ids" else 0
            made[key] = torch.tensor([[*found[key], *[fill] * (longest - len(found[key]))] for found in chosen])
        return {key: value.to(self.device) for key, value in made.items()}


def encode(tokenizer: Any, texts: Sequence[tuple[str, ...]], max_length: int, pad: int, device: str) -> Encoded:
    """Texts, or pairs of them, as the tokenizer has them, cut at a length."""
    columns = [list(column) for column in zip(*texts, strict=True)]
    found = tokenizer(*columns, truncation=True, max_length=max_length, padding=False)
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in found]
    if empty := sum(not ids for ids in found["input_ids"]):
        raise InputError(f"{empty:,} of {len(texts):,} rows have no token; remove them, or use another tokenizer.")
    return Encoded([{name: found[name][i] for name in names} for i in range(len(texts))], pad, device)


def batches(lengths: NDArray[np.int64], size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Numbers of rows in random batches, rows of like length together; the last one may be smaller.

    >>> [b.tolist() for b in batches(np.array([9, 1, 8, 2]), 2, np.random.default_rng(0))]
    [[3, 1], [0, 2]]
    """
    order = rng.permutation(len(lengths))
    together = size * _SORTED_TOGETHER
    parts = [part[np.argsort(-lengths[part], kind="stable")] for part in _cut(order, together)]
    found = [part for whole in parts for part in _cut(whole, size)]
    return (found[i] for i in rng.permutation(len(found)))


def _cut(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


class Steps:
    """An optimizer with a rate of its own for SoftDecay, and rates that go down to 0 in a line."""

    def __init__(self, module: Any, training: Training, total: int) -> None:
        self.module, self.total, self.done = module, total, 0
        groups = parameter_groups(module, training.learning_rate, training.softdecay_learning_rate)
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        self.rates = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: max(0.0, 1 - step / total))

    def __call__(self, loss: Tensor) -> None:
        """One step down the gradient of a loss."""
        if not torch.isfinite(loss):
            raise InputError(f"the loss is {loss.item():g} at step {self.done + 1}; try a lower learning rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), _LONGEST_GRADIENT)
        self.optimizer.step()
        self.rates.step()
        self.optimizer.zero_grad()
        self.done += 1


@dataclass(frozen=True)
class Trained:
    """What training went through: the loss and the held-out score after each epoch, the epoch kept, the steps."""

    losses: list[float]
    held_out: list[float]
    epoch: int
    steps: int


def fine_tune(
    model: Any,
    rows: Encoded,
    labels: Tensor,
    training: Training,
    scored: Callable[[], float],
    rng: np.random.Generator,
    told: Tell,
    after_step: Callable[[int], None],
) -> Trained:
    """Train a model with a head on rows, and leave it as it was after the epoch with the best score.

    labels: (n,), classes or numbers. scored: the score on rows that were held out. after_step: called with the number
    of steps done. The rates go down as if all epochs were trained, whether or not training stops before.
    """
    each = math.ceil(len(rows) / training.batch_size)
    step = Steps(model, training, each * training.epochs)
    losses, held_out = list[float](), list[float]()
    best, kept = dict[str, Tensor](), 0
    for epoch in range(training.epochs):
        model.train()
        total = 0.0
        for which in batches(rows.lengths, training.batch_size, rng):
            loss = model(**rows.batch(which), labels=labels[which].to(rows.device)).loss
            step(loss)
            total += loss.item() * len(which)
            after_step(step.done)
            told(step.done, step.total)
        losses.append(total / len(rows))
        held_out.append(scored())
        if held_out[-1] >= max(held_out):  # of equals the later one, which was trained at lower rates
            best, kept = {key: value.detach().clone() for key, value in model.state_dict().items()}, epoch
        if epoch - kept >= training.patience:
            break
    model.load_state_dict(best)
    return Trained(losses, held_out, kept + 1, step.done)


def predict(model: Any, rows: Encoded, batch_size: int) -> NDArray[np.float64]:
    """What a model with a head says of rows: the class, or where it says one number that number, (n,)."""
    said = np.empty(len(rows))
    model.eval()
    with torch.inference_mode():
        for which in _cut(np.argsort(rows.lengths, kind="stable"), 4 * batch_size):
            logits = model(**rows.batch(which)).logits.float().cpu()
            said[which] = logits[:, 0] if logits.shape[1] == 1 else logits.argmax(-1)
    return said
