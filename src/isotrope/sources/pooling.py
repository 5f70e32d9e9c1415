"""One row for each text: how its tokens, and layers, become a sentence vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isotrope.errors import InputError
from isotrope.registry import Registry

#: Pooling of hidden states (b, t, d) under a mask (b, t) of the tokens that count -> (b, d).
Pool = Callable[[Any, Any], Any]

POOLINGS: Registry[Pool] = Registry("pooling")

#: Names that stand for a pooling and a mix of layers.
_MIXES = {"first+last": "mean:1+-1", "first-last": "mean:1+-1"}


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


def _at(hidden: Any, index: Any) -> Any:
    return hidden.gather(1, index[:, None, None].expand(-1, 1, hidden.shape[2]))[:, 0]


for _name, _pool in (("mean", mean), ("cls", cls), ("last", last), ("max", maximum)):
    POOLINGS.add(_name, _pool)


@dataclass(frozen=True, slots=True)
class Pooling:
    """A pooling over tokens, and the layers to average first; None for each layer on its own."""

    name: str
    pool: Pool
    layers: str | None


def parse(text: str) -> Pooling:
    """The pooling that a name stands for: `mean`, `cls`, `last`, `max`, `first+last`, or with layers `mean:1+-1`.

    >>> parse("first+last").layers
    '1+-1'
    """
    name, _, layers = _MIXES.get(text, text).partition(":")
    if text not in _MIXES and name not in POOLINGS:
        known = ", ".join([*POOLINGS.names(), "first+last", "mean:1+-1 (any layers)"])
        raise InputError(f"there is no pooling {text!r}; known: {known}.")
    return Pooling(text, POOLINGS.get(name), layers or None)
