"""What a linear repair is fitted on, from rows in memory, files, any source, or statistics that are there already."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isotrope.compute.arrays import is_tensor, to_matrix
from isotrope.compute.threads import open_pool as open_threads
from isotrope.errors import InputError
from isotrope.repairs.fit_check import Lengths
from isotrope.repairs.spectrum import find_coarsest, find_narrowest, resolve_storage_type
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source
from isotrope.sources.vectors.row_blocks import dtype_label
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Moments, MomentsAndSample, Sample, Summary, UsableRows, prepare_rows

#: Batches that are worked on or wait their turn: enough for every core, few in memory.
_AHEAD = 4

#: Rows that are kept to try the repair on: enough to say how neighbours survive.
SAMPLE = 2_000


@dataclass(eq=False)
class FitData:
    """What a linear repair is fitted on.

    moments: of the rows. sources: descriptions of where they come from. storage: the type in which they are stored.
    lengths: of the rows as they came. sample: some of them as they came, None where only moments are known.
    """

    moments: Moments
    sources: list[dict[str, Any]]
    storage: str
    lengths: Lengths
    sample: Sample | None = None

    @classmethod
    def from_moments(cls, moments: Moments, sources: Sequence[dict[str, Any]] = ()) -> FitData:
        """Of moments alone, and what is known of their sources."""
        return cls(moments, list(sources), resolve_storage_type(moments, sources), Lengths.from_moments(moments))

    def copy(self) -> FitData:
        """The same with moments of its own, to which others can be added."""
        return replace(self, moments=self.moments.copy(), sources=list(self.sources))

    def add(self, other: FitData) -> None:
        """Add what was collected of more rows."""
        self.moments += other.moments
        self.sources = self.sources + other.sources
        self.storage = find_coarsest([self.storage, other.storage])
        self.lengths += other.lengths
        self.sample = None if self.sample is None or other.sample is None else self.sample + other.sample


@dataclass(eq=False)
class _FitStatistics(MomentsAndSample):
    """Moments of what is fitted on, and lengths and a sample of the rows as they came.

    of_unit_rows: whether it is fitted on rows divided by their length. Batches are worked on side by side and added in
    their order.
    """

    lengths: Lengths = field(default_factory=Lengths)
    of_unit_rows: bool = False
    _waiting: deque[Future[tuple[UsableRows, Moments]]] = field(default_factory=deque)

    def empty(self, bars: Mapping[Any, int] | None = None) -> _FitStatistics:
        return replace(self.empty_for(self.sample.d, self.sample.size), of_unit_rows=self.of_unit_rows)

    def __add__(self, other: _FitStatistics) -> _FitStatistics:
        return replace(super().__add__(other), lengths=self.lengths + other.lengths, of_unit_rows=self.of_unit_rows)

    def open_pool(self, layers: int, threads: int | None = None) -> AbstractContextManager[Executor | None]:
        return open_threads() if threads is None else nullcontext()

    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        for rows in batch.layers.values():  # none where nothing could be used
            if pool is None:
                self._add(*self._compute(rows, batch.rows))
            else:
                self._waiting.append(pool.submit(self._compute, rows, batch.rows))
        if len(self._waiting) > _AHEAD:
            self._add(*self._waiting.popleft().result())

    def settle(self) -> None:
        while self._waiting:
            self._add(*self._waiting.popleft().result())
        super().settle()

    def _compute(self, found: Any, known: Rows) -> tuple[UsableRows, Moments]:
        rows = prepare_rows(found, known)
        return rows, Moments.of(_divide_by_length(rows) if self.of_unit_rows else rows)

    def _add(self, rows: UsableRows, moments: Moments) -> None:
        self.moments += moments
        self.lengths += Lengths.of(rows.norms)
        self.sample.add(_drop_tokens(rows))


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
    empty = _FitStatistics.empty_for(source.width, SAMPLE)
    part = source.reduce(replace(empty, of_unit_rows=of_unit_rows))
    moments = part.moments
    if moments.nonfinite:
        total = moments.n + moments.zero + moments.nonfinite
        raise InputError(
            f"{moments.nonfinite:,} of {total:,} rows hold NaN or inf, expected numbers: correct or remove them, "
            "or fit on Moments, which leave them out."
        )
    sources = [source.describe()] if described else []
    storage = resolve_storage_type(moments, sources) if described else find_storage_type(X)
    return FitData(moments, sources, find_narrowest(part.sample.values, storage), part.lengths, part.sample)


def _from_statistics(X: Moments | Summary) -> FitData:
    if isinstance(X, Moments):
        return FitData.from_moments(X)
    if X.sample is None:
        return _from_statistics(X.moments)
    rows = X.sample.to_usable_rows()
    # Not by the sample: a run may keep that in a narrower type than the rows had.
    return FitData(X.moments, [], resolve_storage_type(X.moments), Lengths.of(rows.norms), take_sample(rows))


def take_sample(rows: UsableRows) -> Sample:
    """A small sample of rows, to try a repair on."""
    sample = Sample.empty(rows.values.shape[1], SAMPLE)
    sample.add(_drop_tokens(rows))
    return sample


def _drop_tokens(rows: UsableRows) -> UsableRows:
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


def _divide_by_length(rows: UsableRows) -> UsableRows:
    """The same rows, each divided by its length."""
    directions = prepare_rows(rows.values / rows.norms[:, None], rows.rows)
    return replace(directions, zero=rows.zero, nonfinite=rows.nonfinite)


def resolve_source(X: Any) -> tuple[Source, bool]:
    """A source of the rows, and whether its description says more than their number."""
    if isinstance(X, Source):
        check_one_layer(X)
        return X, True
    if _are_paths(X):
        return ArraySource(X), True
    rows = to_matrix(X)
    if len(rows) == 0:
        raise InputError("got no row (0 sample(s)), expected at least two.")
    return ArraySource(rows), False


def _are_paths(X: Any) -> bool:
    several = isinstance(X, (list, tuple)) and len(X) > 0
    return all(isinstance(path, (str, os.PathLike)) for path in (X if several else [X])) and not is_tensor(X)


def check_one_layer(source: Source) -> None:
    """Check that a source gives rows of one space."""
    if len(source.layers) != 1:
        raise InputError(f"the source has {len(source.layers)} layers, expected one: a repair is of one space.")


def check_spread(n: int, d: int, *, constant: bool) -> None:
    """Check that n rows of width d have a geometry to repair: at least two of them, and not all the same."""
    if n < 2:
        what = "one row (n_samples=1)" if n else "no row that is not zero"
        raise InputError(f"got {what}, expected at least two to fit a repair.")
    if constant:
        raise InputError(
            f"all {n:,} rows are the same (n_features={d}), so there is nothing to repair; give rows that differ."
        )
