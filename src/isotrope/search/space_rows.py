"""Rows of one space for calibration: a sample of them, or those with given numbers, all of length 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_numpy, to_unit_rows
from isotrope.errors import InputError
from isotrope.evaluation.beir import read_entries
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.row_names import NameColumn, RowNames
from isotrope.sources.source import Source
from isotrope.sources.text.encoder import Encoder
from isotrope.sources.vectors.row_ids import Ids, choose_query_ids, read_row_ids
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import MomentsAndSample

#: Called with a stage, what is done and the total.
Progress = Callable[[str, float, float | None], None]

Rows = NDArray[np.float64]


class UnitSample(NamedTuple):
    """Rows of length 1, (n, d), the rows themselves, and their numbers in the source, (n,)."""

    unit: Rows
    values: Rows
    numbers: NDArray[np.int64]


@dataclass(frozen=True)
class SpaceRows:
    """All rows of one side: documents or queries.

    Attributes:
        source: The rows.
        ids: Number of each row by its id.
        facts: What they are from, as plain data.
        name: "documents" or "queries".
    """

    source: Source
    ids: dict[str, int]
    facts: dict[str, Any]
    name: str

    @property
    def total(self) -> int:
        return self.source.total or 0

    def sample(self, size: int, seed: int) -> UnitSample:
        """A random sample of the rows; those that are zero or not finite are left out."""
        found = self.source.reduce(MomentsAndSample.empty_for(self.source.width, size, seed)).sample
        rows = found.to_usable_rows()
        return UnitSample(rows.wide / rows.norms[:, None], rows.wide, rows.rows.sequence.astype(np.int64))

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows as they are, in pieces."""
        return (to_numpy(rows) for batch in self.source.batches() for rows in batch.layers.values())

    def select(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows with these numbers, of length 1; NaN where a row is zero or not finite."""
        wanted, where = np.unique(numbers, return_inverse=True)
        found, start = np.full((len(wanted), self.source.width), np.nan), 0
        for block in self.blocks():
            here = (wanted >= start) & (wanted < start + len(block))
            found[here] = block[wanted[here] - start]
            start += len(block)
        with np.errstate(invalid="ignore", over="ignore"):
            unit = np.asarray(to_unit_rows(found))
        unit[~np.isfinite(unit).all(axis=1) | (unit == 0.0).all(axis=1)] = np.nan
        return unit[where]


def open_side(reading: Input, name: str, ids: Ids, tell: Progress, *, like: Ids = None) -> SpaceRows:
    """Open the vectors of one side.

    Args:
        reading: The vectors.
        name: "documents" or "queries".
        ids: Where their ids are; by default in a usual column, else they are the numbers of rows.
        tell: Called with the progress.
        like: Where the ids of the documents are, for queries.
    """
    source = reading.open()
    assert isinstance(source, ArraySource)
    found = read_row_ids(source, choose_query_ids(source, like, ids))
    numbers = {each: row for row, each in enumerate(map(str, range(source.total)) if found is None else found)}
    shown = source.with_progress(lambda done, total: tell(f"reading {name}", done, total))
    return SpaceRows(shown, numbers, source.describe(), name)


def encode_texts(encoder: Encoder, texts: Sequence[str], ids: Sequence[str], name: str, tell: Progress) -> SpaceRows:
    """Texts of one side, with an id for each."""
    RowNames(len(texts), NameColumn(f"the {name}", lambda: iter([ids])), None).check()
    numbers = {each: row for row, each in enumerate(ids)}
    rows = encoder(texts, lambda done, total: tell(f"encoding {name}", done, total))
    return SpaceRows(ArraySource(rows, exact=True), numbers, describe_encoder(encoder, len(rows)), name)


def encode_corpus(encoder: Encoder, text: Any, name: str, tell: Progress) -> SpaceRows:
    """The texts of a file, a folder or a list, whose ids are their numbers."""
    reading = replace(encoder.reading, text=text)
    corpus = reading.open_corpus() if text is not None else open_corpus(text)
    rows = encoder.of(corpus, lambda done, total: tell(f"encoding {name}", done, total))
    numbers = {str(number): number for number in range(len(rows))}
    return SpaceRows(ArraySource(rows, exact=True), numbers, describe_encoder(encoder, len(rows)), name)


def encode_entries(encoder: Encoder, path: Any, name: str, tell: Progress) -> SpaceRows:
    """The texts of a file in the format of BEIR, with their ids."""
    if not isinstance(path, str | Path) or not Path(path).is_file():
        raise InputError(f"qrels need the ids of {name}; give a file of JSON lines with _id and text, as of BEIR.")
    entries = [entry for entry in read_entries(Path(path)) if entry.text]
    return encode_texts(encoder, [entry.text for entry in entries], [entry.id for entry in entries], name, tell)


def describe_encoder(encoder: Encoder, rows: int) -> dict[str, Any]:
    """What encoded rows are from, as plain data."""
    return {"kind": "texts", "model": encoder.name, "layers": encoder.layers, "pooling": encoder.pooling, "rows": rows}
