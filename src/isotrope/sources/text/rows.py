"""Hidden states of a batch of texts as rows: of each token, or one for each text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.sources.batch import Groups, Rows
from isotrope.sources.text.pooling import Pooling, compute_weighted_mean
from isotrope.sources.text.token_weights import TokenWeights
from isotrope.sources.text.tokenize import EncodedText


def token_rows(
    hidden: Mapping[Layer, Any], encoded: list[EncodedText], ids: Any, special: Any, counted: Any
) -> tuple[dict[Layer, Any], Rows]:
    """Rows (n, d) of all tokens that count, with their ids, None where a row has no id of its own.

    hidden: (b, t, d) each. ids, special, counted: (b, t).
    """
    import torch

    flat = np.flatnonzero(counted)
    every = len(flat) == counted.size
    index = torch.from_numpy(flat)
    layers = {}
    for label, state in hidden.items():
        rows = state.reshape(-1, state.shape[2])
        layers[label] = widen(rows if every else rows.index_select(0, index.to(rows.device)))
    lengths = counted.sum(axis=1)
    known = Rows(
        sequence=np.repeat(np.array([e.id for e in encoded], np.uint64), lengths),
        token=None if ids is None else ids.reshape(-1)[flat],
        position=np.tile(np.arange(counted.shape[1]), len(encoded))[flat],
        special=special.reshape(-1)[flat],
        group=_groups(encoded, lengths),
    )
    return layers, known


def pool_rows(
    hidden: Mapping[Layer, Any],
    encoded: list[EncodedText],
    ids: Any,
    counted: Any,
    pooling: Pooling,
    weights: TokenWeights | None,
) -> tuple[dict[Layer, Any], Rows]:
    """Rows (b, d), one for each text that has a token that counts.

    hidden: (b, t, d) each, or (b, layers, t, d). ids, counted: (b, t). weights: of tokens, by their ids.
    """
    import torch

    some = np.flatnonzero(counted.any(axis=1))
    pool, mask = pooling.pool, counted[some]
    if weights is not None:
        pool, mask = compute_weighted_mean, weights.values[np.where(mask, ids[some], 0)] * mask
    layers = {}
    for label, state in hidden.items():
        index, inner = (torch.from_numpy(part).to(state.device) for part in (some, mask))
        layers[label] = pool(widen(state[index]), inner)
    kept = [encoded[i] for i in some]
    known = Rows(np.array([e.id for e in kept], np.uint64), group=_groups(kept, np.ones(len(kept), np.int64)))
    return layers, known


def average_layers(states: Mapping[int, Any], wanted: tuple[int, ...]) -> Any:
    """One state, or the average of several."""
    if len(wanted) == 1:
        return states[wanted[0]]
    return sum(widen(states[i]) for i in wanted) / len(wanted)


def stack_layers(states: Mapping[int, Any], wanted: tuple[int, ...]) -> Any:
    """Several states side by side, (b, layers, t, d)."""
    import torch

    return torch.stack([states[i] for i in wanted], dim=1)


def widen(rows: Any) -> Any:
    """Half precision as float32; float32 and float64 as they are."""
    return rows if rows.element_size() >= 4 else rows.float()


def _groups(encoded: list[EncodedText], lengths: NDArray[Any]) -> Groups | None:
    if not encoded or encoded[0].group is None:
        return None
    return Groups.of(e.group for e in encoded).repeat(lengths)


def count_tokens_per_row(tokens: int, rows: int) -> int | None:
    """Tokens to a row, None where that is no whole number.

    >>> [count_tokens_per_row(16, rows) for rows in (16, 4, 5, 32)]
    [1, 4, None, None]
    """
    return tokens // rows if 0 < rows <= tokens and tokens % rows == 0 else None


def common_multiple(strides: Iterable[int | None]) -> int:
    """The length of which texts must be multiples, so that each row of each layer stands for whole tokens.

    >>> common_multiple([1, 4, None, 6])
    12
    """
    return math.lcm(*(s for s in strides if s is not None))


def merge_mask(mask: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
    """A mask (b, t) of rows that stand for several tokens each, (b, t / step): true where any of them is.

    >>> merge_mask(np.array([[True, True, True, False, False, False]]), 2).tolist()
    [[True, True, False]]
    """
    return np.asarray(mask.reshape(len(mask), -1, step).any(axis=2))
