"""One row for each text, by a model that is loaded once for any number of sets of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_numpy
from isotrope.errors import InputError
from isotrope.sources import EMBEDDED
from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import Corpus, open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.source import Source
from isotrope.sources.text.pooling import parse
from isotrope.sources.text.sentence_model import ENCODED

#: Called with the texts done so far, and their number.
Tell = Callable[[int, int], None]

Rows = NDArray[np.floating[Any]]


class TextWorkers(Protocol):
    """Processes elsewhere that run models and read sources."""

    @property
    def engine(self) -> dict[str, Any]:
        """Where they run, as plain data for provenance."""

    def open(self, reading: Input) -> Source:
        """The source of a reading, there."""


@dataclass(frozen=True)
class Encoder:
    """Encode texts as rows, by a model, its layers and a pooling.

    Args:
        reading: The model, layers and pooling. Without a pooling, the mean of the tokens; without layers, the last
            one; several layers, as in "1,-1" or (1, -1), are averaged. Without both, a sentence-transformers model
            encodes texts itself, in the space "encoded".
        workers: Workers that run the model, if this process does not.
    """

    reading: Input
    workers: TextWorkers | None = None

    @cached_property
    def pooled(self) -> Input:
        """The reading with one row for each text, of one layer or one mix of layers."""
        plain = self.reading.pooling is None and self.reading.token_weights is None
        if (
            self.reading.endpoint is not None
            or self.reading.layers == ENCODED
            or (self.reading.layers == "all" and plain and self.reading.has_own_encoding())
        ):
            return replace(self.reading, layers=ENCODED)
        reading = replace(self.reading, pooling=self.reading.pooling or "mean")
        layers = reading.layers
        if layers == "all":
            layers = "all" if parse(reading.pooling or "").layers else "-1"
        elif isinstance(layers, str):
            layers = layers.replace(",", "+")
        elif isinstance(layers, Sequence):
            layers = "+".join(map(str, layers))
        return replace(reading, layers=layers)

    @cached_property
    def loaded(self) -> Loaded:
        """The model, loaded when it is first used."""
        return self.pooled.load()

    @property
    def engine(self) -> dict[str, Any]:
        """Where the model runs, as plain data for provenance."""
        return {"name": "local"} if self.workers is None else self.workers.engine

    @property
    def name(self) -> str:
        """The name of the model."""
        if self.workers is None:
            return self.loaded.name
        return EMBEDDED if self.reading.model is None else str(self.reading.model)

    @cached_property
    def layers(self) -> str:
        """The layers that rows are the average of, such as "1,-1"."""
        if self.pooled.layers == ENCODED:
            return ENCODED
        return (parse(self.pooled.pooling or "").layers or str(self.pooled.layers)).replace("+", ",")

    @property
    def pooling(self) -> str:
        """How tokens become one row; "encoded" where the model does that itself."""
        return self.pooled.pooling or ENCODED

    def __call__(self, texts: Sequence[str], tell: Tell | None = None) -> Rows:
        """One row for each text, in the order of the texts, (n, d); texts that are there again are encoded once."""
        unique = list(dict.fromkeys(texts))
        _check_none(unique, [i for i, text in enumerate(unique) if not text.strip()], "are blank")
        rows, ids = self._rows(open_corpus(unique), len(unique), tell)
        without = np.setdiff1d(np.arange(len(unique)), ids).tolist()
        _check_none(unique, without, f"have no token for the tokenizer of {self.name}")
        row_of = {unique[i]: row for row, i in enumerate(ids)}
        return rows[[row_of[text] for text in texts]]

    def of(self, corpus: Corpus, tell: Tell | None = None) -> Rows:
        """A row for each text of a corpus that has tokens, in the order of the corpus, (n, d)."""
        rows, ids = self._rows(corpus, corpus.count(), tell)
        return rows[np.argsort(ids)]

    def _rows(self, corpus: Corpus, total: int | None, tell: Tell | None) -> tuple[Rows, NDArray[np.int64]]:
        """Rows, texts of like length together, and which texts they are of."""
        if self.workers is None:
            source: Source = self.pooled.rows_over(corpus, self.loaded)
        else:
            texts = [text.text for text in corpus]
            source = self.workers.open(replace(self.pooled, text=texts, column=None, split=None, group_by=None))
        if len(source.layers) != 1:
            layers = ", ".join(map(str, source.layers))
            raise InputError(f"got the layers {layers}, expected one or a mix such as 1+-1: a text has one row.")
        if tell is not None:
            source = source.with_progress(lambda done, _: tell(done, total or done))
        found = [pair for pairs in source.map(_rows_and_ids) for pair in pairs]
        rows, ids = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(ids)


def _rows_and_ids(batch: Batch) -> list[tuple[Rows, NDArray[np.int64]]]:
    """The rows of a batch and their texts, nothing where no text has a token."""
    return [(to_numpy(rows), batch.rows.sequence.astype(np.int64)) for rows in batch.layers.values()]


def _check_none(texts: Sequence[str], bad: Sequence[int], what: str) -> None:
    if bad:
        raise InputError(f"{len(bad):,} of {len(texts):,} texts {what} (the first: {texts[bad[0]]!r}); leave them out.")
