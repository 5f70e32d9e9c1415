"""Rows of the same texts in several layers and mixes of layers, by one pass of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isotrope.sources.batch import Layer
from isotrope.sources.corpora import open_corpus
from isotrope.sources.inputs import Input
from isotrope.sources.models import Loaded
from isotrope.sources.text_rows import Rows, Tell


@dataclass(frozen=True)
class Spaces:
    """Pooled rows by layer or mix of layers. place: which row is a text's."""

    place: Mapping[str, int]
    rows: Mapping[Layer, Rows]

    def __contains__(self, text: str) -> bool:
        return text in self.place

    def of(self, space: Layer, texts: Sequence[str]) -> Rows:
        """The rows of some texts in one space, in their order, (n, d)."""
        return self.rows[space][[self.place[text] for text in texts]]


def encode_in(reading: Input, loaded: Loaded, texts: Iterable[str], tell: Tell | None = None) -> Spaces:
    """The rows of texts in all layers and mixes that a reading names; texts without a token are left out."""
    unique = list(dict.fromkeys(texts))
    source = replace(reading, in_order=False).over(open_corpus(unique), loaded)
    parts: dict[Layer, list[Rows]] = {space: [] for space in source.layers}
    ids, done = [], 0
    for batch in source.batches():
        for space, rows in batch.layers.items():
            parts[space].append(rows.cpu().numpy())
        ids.append(batch.rows.sequence.astype(np.int64))
        done += batch.counts.get(source.unit, 0)
        if tell is not None:
            tell(done, len(unique))
    place = {unique[number]: i for i, number in enumerate(np.concatenate(ids))}
    return Spaces(place, {space: np.concatenate(found) for space, found in parts.items()})
