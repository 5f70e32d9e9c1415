"""One row for each text: how its tokens, and layers, become a sentence vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isotrope.errors import InputError
from isotrope.registry import Registry
from isotrope.sources.text.sbert_wk import LEAST, sbert_wk

#: Pooling of hidden states (b, t, d) under a mask (b, t) of the tokens that count -> (b, d).
Pool = Callable[[Any, Any], Any]

POOLINGS: Registry[Pool] = Registry("pooling")

#: Poolings that see layers one by one, hidden states (b, layers, t, d) and a mask (b, t) -> (b, d), and the fewest.
ACROSS_LAYERS: dict[str, tuple[Pool, int]] = {"sbert-wk": (sbert_wk, LEAST)}

#: Names that stand for a pooling and its layers; those of SBERT-WK are its authors'.
_MIXES = {"first+last": "mean:1+-1", "first-last": "mean:1+-1", "sbert-wk": "sbert-wk:4..-1"}


def mean(hidden: Any, mask: Any) -> Any:
    """Average of the tokens that count."""
    counted = mask.bool()[..., None]
    return hidden.masked_fill(~counted, 0.0).sum(1) / counted.sum(1)


def cls(hidden: Any, mask: Any) -> Any:
    """The first token that counts."""
    return _at(hidden, mask.int().argmax(1))


def last(hidden: Any, mask: Any) -> Any:
    """The last token that counts."""
    return _at(hidden, mask.shape[1] - 1 - mask.int().flip(1).argmax(1))


def maximum(hidden: Any, mask: Any) -> Any:
    """The largest value of each coordinate over the tokens that count."""
    return hidden.masked_fill(~mask.bool()[..., None], float("-inf")).amax(1)


def by_position(hidden: Any, mask: Any) -> Any:
    """Average of the tokens that count, the first once, the second twice and so on (Muennighoff 2022, SGPT)."""
    return compute_weighted_mean(hidden, mask.int().cumsum(1) * mask)


def compute_weighted_mean(hidden: Any, weights: Any) -> Any:
    """Average of tokens by their weights (b, t), zero where they do not count."""
    import torch

    counted = hidden.masked_fill((weights == 0)[..., None], 0.0)
    weights = weights.to(hidden.dtype)
    return torch.einsum("btd,bt->bd", counted, weights) / weights.sum(1, keepdim=True)


def _at(hidden: Any, index: Any) -> Any:
    return hidden.gather(1, index[:, None, None].expand(-1, 1, hidden.shape[2]))[:, 0]


for _name, _pool in (("mean", mean), ("cls", cls), ("last", last), ("max", maximum), ("weightedmean", by_position)):
    POOLINGS.add(_name, _pool)


@dataclass(frozen=True, slots=True)
class Pooling:
    """A pooling over tokens, and the layers to average first; None for each layer on its own.

    least: 0, or for a pooling that sees the layers one by one instead of their average how few are enough.
    """

    name: str
    pool: Pool
    layers: str | None
    least: int = 0


def parse(text: str) -> Pooling:
    """The pooling that a name stands for.

    `mean`, `cls`, `last`, `max`, `weightedmean`, `first+last`, `sbert-wk`, or with layers `mean:1+-1`,
    `sbert-wk:0..-1`.

    >>> parse("first+last").layers
    '1+-1'
    """
    name, _, layers = _MIXES.get(text, text).partition(":")
    if name in ACROSS_LAYERS and layers:
        pool, least = ACROSS_LAYERS[name]
        return Pooling(text, pool, layers, least)
    if name not in POOLINGS:
        known = ", ".join([*POOLINGS.names(), *_MIXES, "mean:1+-1 (any layers)"])
        raise InputError(f"there is no pooling {text!r}; known: {known}.")
    return Pooling(text, POOLINGS.get(name), layers or None)
