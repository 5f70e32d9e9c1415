"""Rows of the same texts in several layers and mixes of layers, tokens alike and weighted, by one pass of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.encoder import Rows, Tell
from isotrope.sources.text.token_weights import TokenWeights


class Space(NamedTuple):
    """One space of a model. layers: their average, such as "1+6". weighted: whether tokens count by their weights."""

    layers: str
    weighted: bool = False


@dataclass(frozen=True)
class Spaces:
    """Pooled rows by space. place: which row is a text's."""

    place: Mapping[str, int]
    rows: Mapping[Space, Rows]

    def __contains__(self, text: str) -> bool:
        return text in self.place

    def of(self, space: Space, texts: Sequence[str]) -> Rows:
        """The rows of some texts in one space, in their order, (n, d)."""
        return self.rows[space][[self.place[text] for text in texts]]


def encode_in(
    reading: Input, loaded: Loaded, texts: Iterable[str], weights: TokenWeights | None = None, tell: Tell | None = None
) -> Spaces:
    """The rows of texts in all layers and mixes that a reading names; texts without a token are left out.

    weights: for the pooling `mean`; then the rows with weighted tokens come along, from the same pass.
    """
    unique = list(dict.fromkeys(texts))
    mixes = str(reading.layers).split(",")
    read = reading
    if weights is not None:
        singles = dict.fromkeys(layer for mix in mixes for layer in mix.split("+"))
        read = replace(reading, pooling=None, layers=",".join(singles))
    source = replace(read, in_order=False).rows_over(open_corpus(unique), loaded)
    names = [str(layer) for layer in source.layers] if weights is None else mixes
    parts: dict[Space, list[Rows]] = {}
    ids = []
    if tell is not None:
        source = source.with_progress(lambda done, _: tell(done, len(unique)))
    for sequences, found in source.map(lambda batch: _pooled(batch, names, weights)):
        for space, rows in found:
            parts.setdefault(space, []).append(rows)
        ids.append(sequences)
    place = {unique[number]: i for i, number in enumerate(np.concatenate(ids))}
    return Spaces(place, {space: np.concatenate(rows) for space, rows in parts.items()})


def _pooled(
    batch: Batch, names: Sequence[str], weights: TokenWeights | None
) -> tuple[NDArray[np.int64], Iterator[tuple[Space, Rows]]]:
    """Which texts a batch is of, and their rows by space."""
    sequences = batch.rows.sequence.astype(np.int64)
    layers = {str(layer): rows for layer, rows in batch.layers.items()}
    if weights is None:
        return sequences, ((Space(name), layers[name].cpu().numpy()) for name in names)
    assert batch.rows.token is not None
    which, of = np.unique(sequences, return_inverse=True)
    by_token = {False: np.ones(len(of), np.float32), True: weights.values[batch.rows.token]}

    def spaces() -> Iterator[tuple[Space, Rows]]:
        for weighted, values in by_token.items():
            means = {layer: _means(rows, of, len(which), values) for layer, rows in layers.items()}
            for mix in names:
                yield Space(mix, weighted), np.mean([means[layer] for layer in mix.split("+")], axis=0)

    return which, spaces()


def _means(rows: Any, of: NDArray[np.int64], count: int, weights: NDArray[np.float32]) -> Rows:
    """Weighted means of token rows (n, d) by the text that each is of -> (count, d)."""
    import torch

    index, by = (torch.from_numpy(a).to(rows.device) for a in (of, weights))
    total = torch.zeros(count, rows.shape[1], dtype=rows.dtype, device=rows.device)
    total.index_add_(0, index, rows * by[:, None])
    mass = torch.zeros(count, dtype=rows.dtype, device=rows.device).index_add_(0, index, by.to(rows.dtype))
    return np.asarray((total / mass[:, None]).cpu().numpy())
