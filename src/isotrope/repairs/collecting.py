"""Moments of whatever a repair is fitted on: rows in memory, files, any source, or moments that are there already."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.atomic import read_arrays
from isotrope.errors import InputError
from isotrope.quantization.threads import threads
from isotrope.repairs.rows import is_tensor, matrix
from isotrope.sources.arrays import ArraySource
from isotrope.sources.batch import Batch, Layer, Source
from isotrope.statistics import Block, Moments, Summary, block
from isotrope.statistics.saved_arrays import name_file
from isotrope.store import Run

#: Batches that are worked on or wait their turn: enough for every core, few in memory.
_AHEAD = 4


def collect(X: Any, *, of_unit_rows: bool = False) -> tuple[Moments, list[dict[str, Any]]]:
    """Moments of rows in one pass and constant memory, and the descriptions of where they come from.

    X: rows (n, d), numpy, torch or a table; a path or list of paths to files of vectors; a source; or moments.
    of_unit_rows: each row divided by its length first. Rows of float32 and narrower are multiplied in float32, a few
    at a time, and summed up in float64: what that leaves uncertain, the moments know and count as zero.
    `ArraySource(path, exact=True)` multiplies them in float64, in twice the time.

    >>> import numpy as np
    >>> collect(np.array([[1.0, 2.0], [3.0, 6.0]]))[0].mean.tolist()
    [2.0, 4.0]
    """
    if isinstance(X, Moments):
        if of_unit_rows:
            raise InputError("moments of rows do not say those of unit rows; fit on the rows, or with normalize=False.")
        return X, []
    source, described = source_of(X)
    prepared = _unit if of_unit_rows else _as_they_are
    elsewhere = getattr(source, "summed", None)
    if elsewhere is not None:
        moments: Moments = elsewhere(partial(_moments, source.width, prepared))
    else:
        moments = Moments.empty(source.width)
        for part in _side_by_side(source, prepared):
            moments += part
    if moments.nonfinite:
        total = moments.n + moments.zero + moments.nonfinite
        raise InputError(
            f"{moments.nonfinite:,} of {total:,} rows hold NaN or inf, expected numbers: correct or remove them, "
            "or fit on Moments, which leave them out."
        )
    return moments, [source.describe()] if described else []


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
    first, *others = (_read(path) for path in paths)
    return sum(others, start=first)


def _read(path: Path) -> Summary:
    with name_file(path):
        return Summary.from_arrays(read_arrays(path))


def _moments(width: int, prepared: Callable[[Block], Block], batches: Iterable[Batch], _: Any) -> Moments:
    """Moments of the rows of some batches, each of one layer or, where nothing could be used, of none."""
    moments = Moments.empty(width)
    for batch in batches:
        for rows in batch.layers.values():
            moments += Moments.of(prepared(block(rows, batch.rows)))
    return moments


def _side_by_side(source: Source, prepared: Callable[[Block], Block]) -> Iterator[Moments]:
    """Moments of each batch in the batches' order, worked out beside each other while the next ones are read."""

    def of(batch: Batch) -> Moments:
        (rows,) = batch.layers.values()
        return Moments.of(prepared(block(rows, batch.rows)))

    with threads() as pool:
        begun: deque[Future[Moments]] = deque()
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
