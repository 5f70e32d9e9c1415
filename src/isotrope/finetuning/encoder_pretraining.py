"""Pretraining of an encoder as a sentence encoder with a loss of sentence-transformers, before fine-tuning.

S-BERT (Reimers and Gurevych 2019): labelled pairs of natural-language inference in a siamese network. BERT-CT (Carlsson
et al. 2021): two copies of the encoder agree on a sentence and differ on seven others. SimCSE (Gao et al. 2021): a
sentence and itself with other dropout, against the other sentences of the batch; supervised, a sentence and one that
follows from it, against the others of the batch and sentences that contradict them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from isotrope.errors import InputError, MissingExtra
from isotrope.finetuning.loop import EncodedRows, Optimizer, split_batches
from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import TaskRows
from isotrope.sources.text.encoder import Tell

Tensor: TypeAlias = torch.Tensor

#: Texts to token ids.
Encode: TypeAlias = Callable[[Sequence[tuple[str, ...]]], EncodedRows]

#: Input of a loss of sentence-transformers: features of each side, and labels.
_Batch: TypeAlias = tuple[list[dict[str, Tensor]], Tensor | None]

#: One in this many pairs of BERT-CT is a sentence with itself.
_PAIRS_PER_IDENTICAL = 8


class _Network(torch.nn.Module):  # type: ignore[misc]  # the base has no types
    """An encoder as the first module of a SentenceTransformer."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add the last hidden states of the tokens to the features."""
        return {**features, "token_embeddings": self.network(**features).last_hidden_state}


def pretrain_encoder(
    name: str,
    network: Any,
    encode: Encode,
    rows: TaskRows,
    training: Training,
    rng: np.random.Generator,
    progress: Tell,
) -> None:
    """Train an encoder as a sentence encoder with mean pooling, in place.

    Args:
        name: "sbert", "bert-ct", "simcse" or "simcse-nli".
        network: encoder of transformers without a head.
        encode: tokenizes texts.
        rows: training data: labelled pairs for "sbert"; triplets of a sentence, one that follows from it and one that
            contradicts it for "simcse-nli"; sentences for the others, which use each of them once.
        training: hyperparameters.
        rng: random numbers of the batches.
        progress: called with the steps done and their total.
    """
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import losses
        from sentence_transformers.sentence_transformer.modules import Pooling
    except ImportError:
        raise MissingExtra("sentence-transformers", "evaluate", f"the method {name}") from None
    width = int(network.config.hidden_size)
    encoder = SentenceTransformer(modules=[_Network(network), Pooling(width, "mean")], device=str(network.device))
    if name == "sbert":
        loss = losses.SoftmaxLoss(encoder, width, num_labels=int(max(rows.labels)) + 1)
    else:
        texts = list(dict.fromkeys(rows.texts))
        if len(texts) < 2:
            raise InputError(f"{name} learns from sentences that differ, got {len(texts)}; use more training rows.")
        rows = TaskRows(texts, [0.0] * len(texts))
        loss = (losses.ContrastiveTensionLoss if name == "bert-ct" else losses.MultipleNegativesRankingLoss)(encoder)
    sides = [encode([(texts[side],) for texts in rows.texts]) for side in range(len(rows.texts[0]))]
    step = Optimizer(loss, training, training.pretraining_epochs * math.ceil(len(rows) / training.batch_size))
    loss.train()
    for _ in range(training.pretraining_epochs):
        for features, labels in _make_batches(name, sides, rows.labels, training.batch_size, rng):
            step(loss(features, labels))
            progress(step.done, step.total)


def _make_batches(
    name: str, sides: Sequence[EncodedRows], labels: Sequence[float], size: int, rng: np.random.Generator
) -> Iterator[_Batch]:
    """The batches of an epoch: each row once."""
    if name == "bert-ct":
        yield from _make_tension_batches(sides[0], size, rng)
        return
    classes = torch.tensor(labels, dtype=torch.long, device=sides[0].device) if name == "sbert" else None
    for which in split_batches(rng.permutation(len(sides[0])), size):
        # A sentence of its own is put in twice, with other dropout.
        features = [side.batch(which) for side in (sides if len(sides) > 1 else [*sides, *sides])]
        yield features, None if classes is None else classes[which]


def _make_tension_batches(encoded: EncodedRows, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    for which in split_batches(rng.permutation(len(encoded)), size):
        same = np.arange(len(which)) % _PAIRS_PER_IDENTICAL == 0
        others = (which + rng.integers(1, len(encoded), len(which))) % len(encoded)
        labels = torch.tensor(same, dtype=torch.float32, device=encoded.device)
        yield [encoded.batch(which), encoded.batch(np.where(same, which, others))], labels
