"""A fitted repair applied to every row of a source, into a file or back into a store, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.repair import Map, Repair
from isotrope.row_files import refuse_target, write_rows
from isotrope.sources.arrays import default_rows
from isotrope.sources.batch import Batch, Source
from isotrope.sources.blocks import NARROW
from isotrope.sources.sharding import mapped
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
            yield keys, _sound(_image(repair.map_, vectors.astype(dtype)), done)
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
    row, pooled = 0, False
    for images in mapped(source, partial(_images, repair.map_)):
        for image in images:
            yield _sound(image, row)
            row += len(image.rows)
            pooled = image.pooled
    texts = pooled and source.unit == "texts"
    if texts and source.total not in (None, row):
        raise InputError(
            f"{source.total:,} texts gave {row:,} rows, expected one row for each: some have no token to pool; "
            "remove them, or keep special tokens."
        )


class _Image(NamedTuple):
    """Repaired rows of a batch, (m, k). pooled: whether each is a text. bad: the first that cannot be, and why."""

    rows: NDArray[np.floating[Any]]
    pooled: bool
    bad: tuple[int, str] | None


def _images(apply: Map, batches: Iterable[Batch], _: Any) -> list[_Image]:
    """The repaired rows of some batches."""
    images = []
    for batch in batches:
        for found in batch.layers.values():
            rows = to_numpy(found.detach() if hasattr(found, "detach") else found)
            images.append(_image(apply, rows, batch.rows.position is None))
    return images


def _image(apply: Map, rows: NDArray[Any], pooled: bool = False) -> _Image:
    """The repaired rows, or why they cannot be."""
    image, bad = rows, _not_finite(rows, "holds NaN or inf")
    if bad is None:
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and told by the row
            image = np.ascontiguousarray(apply(rows))
        bad = _not_finite(image, f"becomes too large for {image.dtype} under this repair")
    return _Image(image, pooled, bad)


def _not_finite(rows: NDArray[Any], what: str) -> tuple[int, str] | None:
    """The first row that is not all numbers, None where all are."""
    if np.isfinite(rows).all():
        return None
    return int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0]), what


def _sound(image: _Image, first: int) -> NDArray[np.floating[Any]]:
    """The rows of an image, the first of which is number `first`; one that is not all numbers is named."""
    if image.bad is not None:
        at, what = image.bad
        raise InputError(f"row {first + at:,}, counted from 0, {what}, expected numbers: correct or remove it.")
    return image.rows
