"""Rows of the same texts in several spaces: layers and averages of layers, tokens equal and weighted, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_numpy
from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.encoder import Rows, Tell
from isotrope.sources.text.token_weights import TokenWeights


class Space(NamedTuple):
    """One space of a model. layers: to be averaged, such as "1+6". weighted: whether tokens are weighted."""

    layers: str
    weighted: bool = False


@dataclass(frozen=True)
class Spaces:
    """Pooled rows by space. numbers: the number of the row of each text."""

    numbers: Mapping[str, int]
    rows: Mapping[Space, Rows]

    def __contains__(self, text: str) -> bool:
        return text in self.numbers

    def of(self, space: Space, texts: Sequence[str]) -> Rows:
        """Rows of texts in one space, in the order of the texts, (n, d)."""
        return self.rows[space][[self.numbers[text] for text in texts]]


def encode_spaces(
    reading: Input, loaded: Loaded, texts: Iterable[str], weights: TokenWeights | None = None, tell: Tell | None = None
) -> Spaces:
    """Encode texts in all layers and averages of layers that a reading names; texts without a token are left out.

    Args:
        reading: model, layers and pooling.
        loaded: the model.
        texts: texts to encode.
        weights: weights for the pooling `mean`; adds the spaces with weighted tokens, from the same pass.
        tell: called with the texts done and their number.
    """
    unique = list(dict.fromkeys(texts))
    mixes = str(reading.layers).split(",")
    read_layers = reading
    if weights is not None:
        singles = dict.fromkeys(layer for mix in mixes for layer in mix.split("+"))
        read_layers = replace(reading, pooling=None, layers=",".join(singles))
    source = replace(read_layers, in_order=False).rows_over(open_corpus(unique), loaded)
    names = [str(layer) for layer in source.layers] if weights is None else mixes
    parts: dict[Space, list[Rows]] = {}
    ids = []
    if tell is not None:
        source = source.with_progress(lambda done, _: tell(done, len(unique)))
    for sequences, found in source.map(lambda batch: _pool_batch(batch, names, weights)):
        for space, rows in found:
            parts.setdefault(space, []).append(rows)
        ids.append(sequences)
    numbers = {unique[number]: i for i, number in enumerate(np.concatenate(ids))}
    return Spaces(numbers, {space: np.concatenate(rows) for space, rows in parts.items()})


def _pool_batch(
    batch: Batch, names: Sequence[str], weights: TokenWeights | None
) -> tuple[NDArray[np.int64], Iterator[tuple[Space, Rows]]]:
    """Numbers of the texts of a batch, and their rows by space."""
    sequences = batch.rows.sequence.astype(np.int64)
    layers = {str(layer): rows for layer, rows in batch.layers.items()}
    if weights is None:
        return sequences, ((Space(name), to_numpy(layers[name])) for name in names)
    assert batch.rows.token is not None
    which, of = np.unique(sequences, return_inverse=True)
    by_token = {False: np.ones(len(of), np.float32), True: weights.values[batch.rows.token]}

    def spaces() -> Iterator[tuple[Space, Rows]]:
        for weighted, values in by_token.items():
            means = {layer: _pool_means(rows, of, len(which), values) for layer, rows in layers.items()}
            for mix in names:
                yield Space(mix, weighted), np.mean([means[layer] for layer in mix.split("+")], axis=0)

    return which, spaces()


def _pool_means(rows: Any, of: NDArray[np.int64], count: int, weights: NDArray[np.float32]) -> Rows:
    """Weighted means of the token rows (n, d) of each text -> (count, d). of: the text of each row."""
    import torch

    index, by = (torch.from_numpy(a).to(rows.device) for a in (of, weights))
    total = torch.zeros(count, rows.shape[1], dtype=rows.dtype, device=rows.device)
    total.index_add_(0, index, rows * by[:, None])
    mass = torch.zeros(count, dtype=rows.dtype, device=rows.device).index_add_(0, index, by.to(rows.dtype))
    return np.asarray((total / mass[:, None]).cpu().numpy())
