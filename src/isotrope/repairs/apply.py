"""A fitted repair applied to every row of a source, into a file or back into a store, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.fit_check import FitCheck
from isotrope.repairs.fit_data import check_one_layer
from isotrope.repairs.repair import Repair
from isotrope.repairs.unit_length import NormalizedMap, combine_ways
from isotrope.sources.batch import Batch
from isotrope.sources.source import Source
from isotrope.sources.vectors.row_blocks import NARROW
from isotrope.sources.vectors.source import default_rows
from isotrope.sources.vectors.stores.store import Records, Store, Target
from isotrope.storage.row_files import check_target, write_rows


def apply_to_file(
    repair: Repair,
    source: Source,
    path: str | Path,
    *,
    normalize: str | None = None,
    allow_mismatch: bool = False,
) -> int:
    """Write the repaired rows of a source, in their order, to a .npy, .parquet or .safetensors file.

    Rows that are stored as float64 or wide integers come out as float64, all others as float32. Rows of zeros become
    what the map makes of them. A row with NaN or infinity is refused by its number, and then nothing is written.

    Args:
        repair: a fitted repair.
        source: of one layer. What else its files hold of each row is written too, where the new file is a table.
        path: a new file.
        normalize: "input", "output" or "both" divide rows by their length there too, besides where the repair says;
            "none" nowhere.
        allow_mismatch: write rows too that differ in length or mean from those that the repair was fitted on.

    >>> import tempfile
    >>> from isotrope.repairs import Centering
    >>> from isotrope.sources.vectors.source import ArraySource
    >>> rows = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count = apply_to_file(Centering().fit(rows), ArraySource(rows), f"{folder}/out.npy")
    ...     count, np.load(f"{folder}/out.npy").tolist()
    (2, [[-1.0, -2.0], [1.0, 2.0]])
    """
    target = Path(path)
    check_target(target)
    check_one_layer(source)
    repair.check_width(source.width)
    columns = source.columns if target.suffix.lower() == ".parquet" else None
    return write_rows(target, repair_batches(repair, source, normalize, allow_mismatch), columns)


def apply_to_store(
    repair: Repair,
    store: Store,
    target: Target,
    tell: Callable[[int, int | None], None] | None = None,
    *,
    normalize: str | None = None,
    allow_mismatch: bool = False,
) -> int:
    """Write the repaired vectors of a store to a new target, with the other columns of each row.

    Args:
        repair: A fitted repair.
        store: The store that is read.
        target: What is written, from `store.target`.
        tell: Called with the number of rows done so far and their total.
        normalize: As for `apply_to_file`.
        allow_mismatch: As for `apply_to_file`.

    Returns:
        The number of rows written.
    """
    repair.check_width(store.block.width)
    dtype = np.dtype(np.float32 if store.block.dtype in NARROW else np.float64)
    apply = _make_application(repair, normalize, allow_mismatch)
    done = 0

    def records() -> Records:
        nonlocal done
        for keys, vectors in store.records(default_rows(store.block.width)):
            yield keys, _check_image(apply(vectors.astype(dtype)), done)
            done += len(vectors)
            if tell is not None:
                tell(done, store.block.rows)

    target.write(_compute_first(records()))
    return done


def _compute_first(records: Records) -> Records:
    """The same records, the first of which are repaired before anything is written."""
    rest = iter(records)
    first = next(rest, None)
    return rest if first is None else chain([first], rest)


def repair_batches(
    repair: Repair, source: Source, normalize: str | None = None, allow_mismatch: bool = False
) -> Iterator[NDArray[np.floating[Any]]]:
    """The repaired rows of a source, batch by batch, (m, d) -> (m, k), float32 or float64."""
    row, pooled = 0, False
    for images in source.map(partial(_apply_to_batch, _make_application(repair, normalize, allow_mismatch))):
        for image in images:
            yield _check_image(image, row)
            row += len(image.rows)
            pooled = image.pooled
    texts = pooled and source.unit == "texts"
    if texts and source.total not in (None, row):
        raise InputError(
            f"{source.total:,} texts gave {row:,} rows, expected one row for each: some have no token to pool; "
            "remove them, or keep special tokens."
        )


class _RepairedRows(NamedTuple):
    """Repaired rows of a batch, (m, k).

    pooled: whether each row is a text. bad: the number of the first row that cannot be repaired, and why.
    mismatch: how the rows differ from those of the fit.
    """

    rows: NDArray[np.floating[Any]]
    pooled: bool
    bad: tuple[int, str] | None
    mismatch: str | None = None


@dataclass(frozen=True, eq=False)
class _Application:
    """What is done to each batch of rows, here or on another machine. check: what rows must look like, if anything."""

    map: NormalizedMap
    check: FitCheck | None

    def __call__(self, rows: NDArray[Any], pooled: bool = False) -> _RepairedRows:
        """The repaired rows, or why they cannot be."""
        bad = _find_nonfinite(rows, "holds NaN or inf")
        if bad is not None:
            return _RepairedRows(rows, pooled, bad)
        if self.check is not None and (mismatch := self.check.find_mismatch(self.map.prepare(rows))):
            return _RepairedRows(rows, pooled, None, mismatch)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and named by the row
            image = np.ascontiguousarray(self.map(rows))
        return _RepairedRows(
            image, pooled, _find_nonfinite(image, f"becomes too large for {image.dtype} under this repair")
        )


def _make_application(repair: Repair, normalize: str | None, allow_mismatch: bool) -> _Application:
    way = combine_ways(repair.normalizes_, normalize)
    return _Application(NormalizedMap(repair.map_, way), None if allow_mismatch else repair.fit_check_)


def _apply_to_batch(apply: _Application, batch: Batch) -> list[_RepairedRows]:
    """The repaired rows of a batch; none where nothing in it could be used."""
    return [apply(rows, batch.rows.position is None) for rows in batch.to_numpy().layers.values()]


def _find_nonfinite(rows: NDArray[Any], what: str) -> tuple[int, str] | None:
    """The first row that is not all numbers, None where all are."""
    if np.isfinite(rows).all():
        return None
    return int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0]), what


def _check_image(image: _RepairedRows, first: int) -> NDArray[np.floating[Any]]:
    """The rows of an image, the first of which is number `first`; one that is not all numbers is named."""
    if image.mismatch is not None:
        raise InputError(
            f"the rows from number {first:,} on are unlike those that the repair was fitted on: {image.mismatch}; "
            "give rows like those, divide them by their length with --normalize input (normalize='input' in Python), "
            "or apply it all the same with --allow-mismatch (allow_mismatch=True)."
        )
    if image.bad is not None:
        at, what = image.bad
        raise InputError(f"row {first + at:,}, counted from 0, {what}, expected numbers: correct or remove it.")
    return image.rows
