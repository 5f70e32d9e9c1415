"""The usable rows of one layer in one batch, with their lengths: what every statistic starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.batch import Rows

#: Squared lengths outside these count as zero and as not finite: their own squares would leave float64's range.
_SMALLEST, _LARGEST = 1e-140, 1e140

#: Squared lengths between which products of float32 rows neither overflow nor vanish.
_FLOAT32_SAFE = (1e-20, 1e30)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that are finite and not zero, centred once for all statistics, and how many were left out.

    values: (n, d), the rows, float32 (fast) or float64 (exact). wide: (n, d), the same in float64.
    norms: (n,), Euclidean length of each row. mean: (d,). All of them float64.
    shift: (d,), the mean rounded to the rows' own type, so that rows minus shift is exact where they are close.
    centred: (n, d), rows − shift in their own type, on their own device: what large products are taken of.
    """

    values: NDArray[np.floating[Any]]
    wide: NDArray[np.float64]
    norms: NDArray[np.float64]
    mean: NDArray[np.float64]
    shift: NDArray[np.float64]
    centred: Any
    rows: Rows
    zero: int = 0
    nonfinite: int = 0

    def __len__(self) -> int:
        return len(self.norms)


def to_numpy(rows: Any) -> NDArray[Any]:
    """A numpy view of rows where there is one (torch on the CPU shares its memory), else a copy."""
    return np.asarray(rows.cpu().numpy() if _is_torch(rows) else rows)


def _is_torch(rows: Any) -> bool:
    """Whether rows are a torch tensor, told without importing torch."""
    return hasattr(rows, "detach")


def block(rows: Any, known: Rows | None = None) -> Block:
    """Check rows, leave out what cannot be measured, take each row's length and centre them.

    rows: (n, d) numbers, numpy or torch. known: what is known of each row; by default each row is a
    sequence of its own.

    >>> b = block(np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0]]))
    >>> len(b), b.norms.tolist(), b.zero, b.nonfinite
    (1, [5.0], 1, 1)
    """
    if _is_torch(rows):
        rows = rows.detach()
        if rows.is_floating_point() and rows.element_size() < 4:  # numpy knows no bfloat16
            rows = rows.float()
    values = to_numpy(rows)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"expected rows of shape (n, d) with d >= 1, got an array of shape {values.shape}.")
    if values.dtype.kind not in "fiub":
        raise InputError(f"expected rows of real numbers, got an array of type {values.dtype}.")
    if known is None:
        known = Rows(np.arange(len(values), dtype=np.uint64))
    elif len(known) != len(values):
        raise InputError(f"got {len(values)} rows, but what is known of the rows is about {len(known)}.")
    if values.dtype not in (np.float32, np.float64):
        rows = values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    wide = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", wide, wide)
    finite, zero = squares < _LARGEST, squares < _SMALLEST
    keep = finite & ~zero
    if not keep.all():
        rows = values = values[keep]
        wide, squares, known = wide[keep], squares[keep], known.take(keep)
    if len(squares) and not _FLOAT32_SAFE[0] < squares.max() < _FLOAT32_SAFE[1]:
        rows = values = wide
    mean = wide.sum(axis=0) / max(len(wide), 1)
    shift = mean.astype(values.dtype)
    return Block(
        values=values,
        wide=wide,
        norms=np.sqrt(squares),
        mean=mean,
        shift=shift.astype(np.float64),
        centred=rows - (rows.new_tensor(shift) if _is_torch(rows) else shift),
        rows=known,
        zero=int(zero.sum()),
        nonfinite=int(len(finite) - finite.sum()),
    )
