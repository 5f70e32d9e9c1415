"""A fitted repair applied to every row of a source, into a file or back into a store, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.repair import Repair
from isotrope.row_files import refuse_target, write_rows
from isotrope.sources.arrays import default_rows
from isotrope.sources.batch import Source
from isotrope.sources.blocks import NARROW
from isotrope.sources.stores.store import Records, Store, Target
from isotrope.statistics.block import to_numpy


def apply_to_file(repair: Repair, source: Source, path: str | Path) -> int:
    """Write the repaired rows of a source, in their order, to a .npy, .parquet or .safetensors file; their number.

    Rows that are stored as float64 or wide integers come out as float64, all others as float32. Rows of zeros become
    what the map makes of them. A row with NaN or infinity is refused by its number, and then nothing is written.

    >>> import tempfile
    >>> from isotrope.repairs import Centering
    >>> from isotrope.sources.arrays import ArraySource
    >>> rows = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count = apply_to_file(Centering().fit(rows), ArraySource(rows), f"{folder}/out.npy")
    ...     count, np.load(f"{folder}/out.npy").tolist()
    (2, [[-1.0, -2.0], [1.0, 2.0]])
    """
    target = Path(path)
    refuse_target(target)
    if len(source.layers) != 1:
        raise InputError(f"the source has {len(source.layers)} layers, expected one: a repair is of one space.")
    _refuse_width(repair, source.width)
    return write_rows(target, repaired(repair, source))


def apply_to_store(
    repair: Repair, store: Store, target: Target, tell: Callable[[int, int | None], None] | None = None
) -> int:
    """Write the repaired vectors of a store to a new place in it, beside what belongs to each; their number.

    target: from `store.target`. tell: called with the rows done so far, and their total.
    """
    _refuse_width(repair, store.block.width)
    dtype = np.dtype(np.float32 if store.block.dtype in NARROW else np.float64)
    done = 0

    def records() -> Records:
        nonlocal done
        for keys, vectors in store.records(default_rows(store.block.width)):
            yield keys, _image(repair, vectors.astype(dtype), done)
            done += len(vectors)
            if tell is not None:
                tell(done, store.block.rows)

    target.write(records())
    return done


def _refuse_width(repair: Repair, width: int) -> None:
    if width != repair.n_features_in_:
        raise InputError(
            f"got rows of width {width}, expected {repair.n_features_in_}: give rows of the width that the "
            "repair was fitted on."
        )


def repaired(repair: Repair, source: Source) -> Iterator[NDArray[np.floating[Any]]]:
    """The repaired rows of a source, batch by batch, (m, d) -> (m, k), float32 or float64."""
    row, texts = 0, False
    for batch in source.batches():
        (found,) = batch.layers.values()
        rows = to_numpy(found.detach() if hasattr(found, "detach") else found)
        yield _image(repair, rows, row)
        row += len(rows)
        texts = source.unit == "texts" and batch.rows.position is None
    if texts and source.total not in (None, row):
        raise InputError(
            f"{source.total:,} texts gave {row:,} rows, expected one row for each: some have no token to pool; "
            "remove them, or keep special tokens."
        )


def _image(repair: Repair, rows: NDArray[Any], first: int) -> NDArray[np.floating[Any]]:
    """The repaired rows, the first of which is number `first`."""
    _refuse_nonfinite(rows, first, "holds NaN or inf")
    with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and told by the row
        image = np.ascontiguousarray(repair.map_(rows))
    _refuse_nonfinite(image, first, f"becomes too large for {image.dtype} under this repair")
    return image


def _refuse_nonfinite(rows: NDArray[Any], first: int, what: str) -> None:
    """Name the first row, counted from `first` on, that is not all numbers."""
    if not np.isfinite(rows).all():
        at = first + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(f"row {at:,}, counted from 0, {what}, expected numbers: correct or remove it.")
