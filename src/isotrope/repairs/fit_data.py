"""What a linear repair is fitted on, from rows in memory, files, any source, or statistics that are there already."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isotrope.compute.threads import threads
from isotrope.errors import InputError
from isotrope.repairs.fit_check import Lengths
from isotrope.repairs.resolution import coarsest, narrowest, storage_type
from isotrope.repairs.rows import is_tensor, matrix
from isotrope.sources.batch import Batch, Rows, Source
from isotrope.sources.vectors.row_blocks import dtype_label
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Block, Moments, Sample, Summary, block

#: Batches that are worked on or wait their turn: enough for every core, few in memory.
_AHEAD = 4


#: Rows that are kept to try the repair on: enough to say how neighbours survive.
SAMPLE = 2_000


class Collected(NamedTuple):
    """What a linear repair is fitted on.

    moments: of the rows. sources: descriptions of where they come from. storage: the type in which they are stored.
    lengths: of the rows as they came. sample: some of them as they came, None where only moments are known.
    """

    moments: Moments
    sources: list[dict[str, Any]]
    storage: str
    lengths: Lengths
    sample: Sample | None


@dataclass(eq=False)
class _Part:
    """What some batches add: a value with `+`."""

    moments: Moments
    lengths: Lengths
    sample: Sample

    @classmethod
    def empty(cls, width: int) -> _Part:
        return cls(Moments.empty(width), Lengths(), Sample.empty(width, SAMPLE))

    def __add__(self, other: _Part) -> _Part:
        return _Part(self.moments + other.moments, self.lengths + other.lengths, self.sample + other.sample)

    def add(self, rows: Block, moments: Moments) -> None:
        """Take in rows as they came, and the moments of what is fitted on."""
        self.moments += moments
        self.lengths += Lengths.of(rows.norms)
        self.sample.add(_without_tokens(rows))

    def settle(self) -> None:
        """Put the sample in order."""
        self.sample.settle()


def collect(X: Any, *, of_unit_rows: bool = False) -> Collected:
    """Moments, lengths and a sample of rows in one pass and constant memory, and where the rows come from.

    X: rows (n, d), numpy, torch or a table; a path or list of paths to files of vectors; a source; moments; or the
    summary that a scan has left. of_unit_rows: moments of the rows divided by their length. Rows of float32 and
    narrower are multiplied in float32, a few at a time, and summed up in float64: what that leaves uncertain, the
    moments know and count as zero. `ArraySource(path, exact=True)` multiplies them in float64, in twice the time.

    >>> collect(np.array([[1.0, 2.0], [3.0, 6.0]])).moments.mean.tolist()
    [2.0, 4.0]
    """
    if isinstance(X, (Moments, Summary)):
        if of_unit_rows:
            raise InputError("moments of rows do not say those of unit rows; fit on the rows, or with normalize=False.")
        return _of_statistics(X)
    source, described = source_of(X)
    prepare = _unit if of_unit_rows else _as_they_are
    elsewhere = getattr(source, "summed", None)
    part: _Part
    if elsewhere is not None:
        part = elsewhere(partial(_part, source.width, prepare))
    else:
        part = _Part.empty(source.width)
        for rows, found in _side_by_side(source, prepare):
            part.add(rows, found)
    moments = part.moments
    if moments.nonfinite:
        total = moments.n + moments.zero + moments.nonfinite
        raise InputError(
            f"{moments.nonfinite:,} of {total:,} rows hold NaN or inf, expected numbers: correct or remove them, "
            "or fit on Moments, which leave them out."
        )
    part.settle()
    sources = [source.describe()] if described else []
    storage = storage_type(moments, sources) if described else stored_as(X)
    return Collected(moments, sources, narrowest(part.sample.values, storage), part.lengths, part.sample)


def _of_statistics(X: Moments | Summary) -> Collected:
    if isinstance(X, Moments):
        return Collected(X, [], storage_type(X), Lengths.from_moments(X), None)
    if X.sample is None:
        return _of_statistics(X.moments)
    rows = X.sample.block()
    # Not by the sample: a run may keep that in a narrower type than the rows had.
    return Collected(X.moments, [], storage_type(X.moments), Lengths.of(rows.norms), sample_of(rows))


def sample_of(rows: Block) -> Sample:
    """A small sample of rows, to try a repair on."""
    sample = Sample.empty(rows.values.shape[1], SAMPLE)
    sample.add(_without_tokens(rows))
    return sample


def _without_tokens(rows: Block) -> Block:
    """The same rows, of which only the sequence is known: samples of several sources can then be joined."""
    return replace(rows, rows=Rows(rows.rows.sequence))


def stored_as(rows: Any) -> str:
    """The storage type of rows in memory.

    >>> stored_as(np.ones((2, 2), np.int8)), stored_as([[1.0, 2.0]])
    ('int8', 'float64')
    """
    if is_tensor(rows):
        return coarsest([str(rows.dtype).removeprefix("torch.")])
    return coarsest([dtype_label(np.asarray(rows).dtype)])


def _part(width: int, prepare: Callable[[Block], Block], batches: Iterable[Batch], _: Any) -> _Part:
    """What some batches add, each of one layer or, where nothing could be used, of none."""
    part = _Part.empty(width)
    for batch in batches:
        for found in batch.layers.values():
            rows = block(found, batch.rows)
            part.add(rows, Moments.of(prepare(rows)))
    part.settle()
    return part


def _side_by_side(source: Source, prepare: Callable[[Block], Block]) -> Iterator[tuple[Block, Moments]]:
    """Rows and moments of each batch in the batches' order, worked out beside each other while the next are read."""

    def of(batch: Batch) -> tuple[Block, Moments]:
        (found,) = batch.layers.values()
        rows = block(found, batch.rows)
        return rows, Moments.of(prepare(rows))

    with threads() as pool:
        begun: deque[Future[tuple[Block, Moments]]] = deque()
        for batch in source.batches():
            if batch.layers:  # none where nothing could be used
                begun.append(pool.submit(of, batch))
            if len(begun) > _AHEAD:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def _as_they_are(rows: Block) -> Block:
    return rows


def _unit(rows: Block) -> Block:
    """The same rows, each divided by its length."""
    directions = block(rows.values / rows.norms[:, None], rows.rows)
    return replace(directions, zero=rows.zero, nonfinite=rows.nonfinite)


def source_of(X: Any) -> tuple[Source, bool]:
    """A source of the rows, and whether its description says more than their number."""
    if hasattr(X, "batches"):
        source: Source = X
        if len(source.layers) != 1:
            raise InputError(f"the source has {len(source.layers)} layers, expected one: a repair is of one space.")
        return source, True
    if _names_files(X):
        return ArraySource(X), True
    rows = matrix(X)
    if len(rows) == 0:
        raise InputError("got no row (0 sample(s)), expected at least two.")
    return ArraySource(rows), False


def _names_files(X: Any) -> bool:
    several = isinstance(X, (list, tuple)) and len(X) > 0
    return all(isinstance(path, (str, os.PathLike)) for path in (X if several else [X])) and not is_tensor(X)
