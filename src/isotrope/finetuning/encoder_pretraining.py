"""Pretraining of an encoder as a sentence encoder: one epoch with a loss of sentence-transformers, before fine-tuning.

S-BERT (Reimers and Gurevych 2019): labelled pairs of natural-language inference in a siamese network. BERT-CT (Carlsson
et al. 2021): two copies of the encoder agree on a sentence and differ on seven others. SimCSE (Gao et al. 2021): a
sentence and itself with other dropout, against the other sentences of the batch.
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
    sentences: Sequence[str],
    pairs: TaskRows | None,
    training: Training,
    rng: np.random.Generator,
    progress: Tell,
) -> None:
    """Train an encoder as a sentence encoder with mean pooling, in place.

    Args:
        name: "sbert", "bert-ct" or "simcse".
        network: encoder of transformers without a head.
        encode: tokenizes texts.
        sentences: training data of "bert-ct" and "simcse".
        pairs: training data of "sbert".
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
    size = training.batch_size
    if name == "sbert":
        assert pairs is not None
        loss = losses.SoftmaxLoss(encoder, width, num_labels=int(max(pairs.labels)) + 1)
        batches, count = _make_labelled_batches(pairs, encode, size, rng), len(pairs)
    else:
        unique = list(dict.fromkeys(sentences))
        if len(unique) < 2:
            raise InputError(f"{name} learns from sentences that differ, got {len(unique)}; use more training rows.")
        encoded, count = encode([(text,) for text in unique]), len(unique)
        if name == "bert-ct":
            loss, batches = losses.ContrastiveTensionLoss(encoder), _make_tension_batches(encoded, size, rng)
        else:
            loss, batches = losses.MultipleNegativesRankingLoss(encoder), _make_simcse_batches(encoded, size, rng)
    total = math.ceil(count / size)
    step = Optimizer(loss, training, total)
    loss.train()
    for features, labels in batches:
        step(loss(features, labels))
        progress(step.done, total)


def _make_labelled_batches(pairs: TaskRows, encode: Encode, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    sides = [encode([(texts[side],) for texts in pairs.texts]) for side in (0, 1)]
    labels = torch.tensor(pairs.labels, dtype=torch.long)
    for which in split_batches(rng.permutation(len(pairs)), size):
        yield [side.batch(which) for side in sides], labels[which].to(sides[0].device)


def _make_tension_batches(encoded: EncodedRows, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    for which in split_batches(rng.permutation(len(encoded)), size):
        same = np.arange(len(which)) % _PAIRS_PER_IDENTICAL == 0
        others = (which + rng.integers(1, len(encoded), len(which))) % len(encoded)
        labels = torch.tensor(same, dtype=torch.float32, device=encoded.device)
        yield [encoded.batch(which), encoded.batch(np.where(same, which, others))], labels


def _make_simcse_batches(encoded: EncodedRows, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    for which in split_batches(rng.permutation(len(encoded)), size):
        yield [encoded.batch(which), encoded.batch(which)], None
