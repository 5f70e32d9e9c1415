"""What a linear repair is fitted on, from rows in memory, files, any source, or statistics that are there already."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isotrope.compute.arrays import is_tensor, to_matrix
from isotrope.compute.threads import open_pool
from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.repairs.fit_check import Lengths
from isotrope.repairs.spectrum import find_coarsest, find_narrowest, resolve_storage_type
from isotrope.runs.run import Run
from isotrope.sources.batch import Batch, Rows, Source
from isotrope.sources.vectors.row_blocks import dtype_label
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Block, Moments, Sample, Summary, block
from isotrope.statistics.saved_arrays import name_file
from isotrope.storage.files import read_arrays

#: Batches that are worked on or wait their turn: enough for every core, few in memory.
_AHEAD = 4


#: Rows that are kept to try the repair on: enough to say how neighbours survive.
SAMPLE = 2_000


class FitData(NamedTuple):
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
        self.sample.add(_drop_tokens(rows))

    def settle(self) -> None:
        """Put the sample in order."""
        self.sample.settle()


def collect(X: Any, *, of_unit_rows: bool = False) -> FitData:
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
        return _from_statistics(X)
    source, described = resolve_source(X)
    prepare = _divide_by_length if of_unit_rows else _as_they_are
    elsewhere = getattr(source, "summed", None)
    part: _Part
    if elsewhere is not None:
        part = elsewhere(partial(_collect_part, source.width, prepare))
    else:
        part = _Part.empty(source.width)
        for rows, found in _compute_in_parallel(source, prepare):
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
    storage = resolve_storage_type(moments, sources) if described else find_storage_type(X)
    return FitData(moments, sources, find_narrowest(part.sample.values, storage), part.lengths, part.sample)


def _from_statistics(X: Moments | Summary) -> FitData:
    if isinstance(X, Moments):
        return FitData(X, [], resolve_storage_type(X), Lengths.from_moments(X), None)
    if X.sample is None:
        return _from_statistics(X.moments)
    rows = X.sample.block()
    # Not by the sample: a run may keep that in a narrower type than the rows had.
    return FitData(X.moments, [], resolve_storage_type(X.moments), Lengths.of(rows.norms), take_sample(rows))


def take_sample(rows: Block) -> Sample:
    """A small sample of rows, to try a repair on."""
    sample = Sample.empty(rows.values.shape[1], SAMPLE)
    sample.add(_drop_tokens(rows))
    return sample


def _drop_tokens(rows: Block) -> Block:
    """The same rows, of which only the sequence is known: samples of several sources can then be joined."""
    return replace(rows, rows=Rows(rows.rows.sequence))


def find_storage_type(rows: Any) -> str:
    """The storage type of rows in memory.

    >>> find_storage_type(np.ones((2, 2), np.int8)), find_storage_type([[1.0, 2.0]])
    ('int8', 'float64')
    """
    if is_tensor(rows):
        return find_coarsest([str(rows.dtype).removeprefix("torch.")])
    return find_coarsest([dtype_label(np.asarray(rows).dtype)])


def saved_moments(run: str | Path, layer: Layer | None = None) -> Moments:
    """Moments of one layer that a scan has left in its run folder, all groups together; see `saved_summary`."""
    return saved_summary(run, layer).moments


def saved_summary(run: str | Path, layer: Layer | None = None) -> Summary:
    """All statistics of one layer that a scan has left in its run folder, its row sample too, all groups together.

    layer: as the run names it; a run of a single layer needs none.
    """
    opened = Run(run)
    files = opened.statistics()
    layers = list(dict.fromkeys(found for _, found, _ in files))
    wanted = layers[0] if layer is None and len(layers) == 1 else layer
    if wanted not in layers:
        names = ", ".join(map(str, layers))
        raise InputError(f"the run {str(run)!r} has the layers {names}, got {layer!r}; name one of them.")
    paths = [path for _, found, path in files if found == wanted]
    for path in paths:
        opened.verify(path)
    first, *others = (_read_summary(path) for path in paths)
    return sum(others, start=first)


def _read_summary(path: Path) -> Summary:
    with name_file(path):
        return Summary.from_arrays(read_arrays(path))


def _collect_part(width: int, prepare: Callable[[Block], Block], batches: Iterable[Batch], _: Any) -> _Part:
    """What some batches add, each of one layer or, where nothing could be used, of none."""
    part = _Part.empty(width)
    for batch in batches:
        for found in batch.layers.values():
            rows = block(found, batch.rows)
            part.add(rows, Moments.of(prepare(rows)))
    part.settle()
    return part


def _compute_in_parallel(source: Source, prepare: Callable[[Block], Block]) -> Iterator[tuple[Block, Moments]]:
    """Rows and moments of each batch in the batches' order, worked out beside each other while the next are read."""

    def of(batch: Batch) -> tuple[Block, Moments]:
        (found,) = batch.layers.values()
        rows = block(found, batch.rows)
        return rows, Moments.of(prepare(rows))

    with open_pool() as pool:
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


def _divide_by_length(rows: Block) -> Block:
    """The same rows, each divided by its length."""
    directions = block(rows.values / rows.norms[:, None], rows.rows)
    return replace(directions, zero=rows.zero, nonfinite=rows.nonfinite)


def resolve_source(X: Any) -> tuple[Source, bool]:
    """A source of the rows, and whether its description says more than their number."""
    if hasattr(X, "batches"):
        source: Source = X
        if len(source.layers) != 1:
            raise InputError(f"the source has {len(source.layers)} layers, expected one: a repair is of one space.")
        return source, True
    if _are_paths(X):
        return ArraySource(X), True
    rows = to_matrix(X)
    if len(rows) == 0:
        raise InputError("got no row (0 sample(s)), expected at least two.")
    return ArraySource(rows), False


def _are_paths(X: Any) -> bool:
    several = isinstance(X, (list, tuple)) and len(X) > 0
    return all(isinstance(path, (str, os.PathLike)) for path in (X if several else [X])) and not is_tensor(X)
