"""Sentence encoders before fine-tuning: an encoder is first trained by a loss of sentence-transformers, for one epoch.

S-BERT (Reimers and Gurevych 2019): labelled pairs of natural-language inference through a siamese network. BERT-CT
(Carlsson et al. 2021): two copies that must agree on a sentence and differ on seven others. SimCSE (Gao et al. 2021):
a sentence and itself under other dropout, against the rest of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from isotrope.errors import InputError, MissingExtra
from isotrope.finetuning.loop import Encoded, Steps, Tell
from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import Rows

Tensor: TypeAlias = torch.Tensor

#: Texts to token ids.
Encode: TypeAlias = Callable[[Sequence[tuple[str, ...]]], Encoded]

#: What a loss of sentence-transformers takes: features of each side, and labels.
_Batch: TypeAlias = tuple[list[dict[str, Tensor]], Tensor | None]

#: Of so many pairs of BERT-CT one is a sentence with itself.
_PAIRS_TO_ONE = 8


class _Network(torch.nn.Module):  # type: ignore[misc]  # the base has no types
    """An encoder as the first module of a SentenceTransformer."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """The features with the tokens' last hidden states."""
        return {**features, "token_embeddings": self.network(**features).last_hidden_state}


def sentence_stage(
    name: str,
    network: Any,
    encode: Encode,
    sentences: Sequence[str],
    pairs: Rows | None,
    training: Training,
    rng: np.random.Generator,
    told: Tell,
) -> None:
    """Train an encoder, in place, as a sentence encoder with mean pooling.

    name: "sbert", "bert-ct" or "simcse". sentences: what the last two learn from. pairs: what S-BERT learns from.
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
        made, count = _labelled(pairs, encode, size, rng), len(pairs)
    else:
        unique = list(dict.fromkeys(sentences))
        if len(unique) < 2:
            raise InputError(f"{name} learns from sentences that differ, got {len(unique)}; use more training rows.")
        encoded, count = encode([(text,) for text in unique]), len(unique)
        if name == "bert-ct":
            loss, made = losses.ContrastiveTensionLoss(encoder), _tension(encoded, size, rng)
        else:
            loss, made = losses.MultipleNegativesRankingLoss(encoder), _twice(encoded, size, rng)
    total = math.ceil(count / size)
    step = Steps(loss, training, total)
    loss.train()
    for features, labels in made:
        step(loss(features, labels))
        told(step.done, total)


def _labelled(pairs: Rows, encode: Encode, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    sides = [encode([(texts[side],) for texts in pairs.texts]) for side in (0, 1)]
    labels = torch.tensor(pairs.labels, dtype=torch.long)
    for which in _shuffled(len(pairs), size, rng):
        yield [side.batch(which) for side in sides], labels[which].to(sides[0].device)


def _tension(encoded: Encoded, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    for which in _shuffled(len(encoded), size, rng):
        same = np.arange(len(which)) % _PAIRS_TO_ONE == 0
        apart = (which + rng.integers(1, len(encoded), len(which))) % len(encoded)
        labels = torch.tensor(same, dtype=torch.float32, device=encoded.device)
        yield [encoded.batch(which), encoded.batch(np.where(same, which, apart))], labels


def _twice(encoded: Encoded, size: int, rng: np.random.Generator) -> Iterator[_Batch]:
    for which in _shuffled(len(encoded), size, rng):
        yield [encoded.batch(which), encoded.batch(which)], None


def _shuffled(count: int, size: int, rng: np.random.Generator) -> Iterator[Any]:
    order = rng.permutation(count)
    return (order[i : i + size] for i in range(0, count, size))
