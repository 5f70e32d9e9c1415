"""The usable rows of one layer in one batch, with their lengths: what every statistic starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.batch import Rows


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that are finite and not zero, centred once for all statistics, and how many were left out.

    values: (n, d), the rows, float32 (fast) or float64 (exact). wide: (n, d), the same in float64.
    norms: (n,), Euclidean length of each row. mean: (d,). All of them float64.
    shift: (d,), the mean rounded to the rows' own type, so that rows minus shift is exact where they are close.
    centred: (n, d), rows − shift in their own type, on their own device: what large products are taken of.
    offsets: (n, d), the same as float64 numpy, for sums by token type.
    """

    values: NDArray[np.floating[Any]]
    wide: NDArray[np.float64]
    norms: NDArray[np.float64]
    mean: NDArray[np.float64]
    shift: NDArray[np.float64]
    centred: Any
    offsets: NDArray[np.float64]
    rows: Rows
    zero: int = 0
    nonfinite: int = 0

    def __len__(self) -> int:
        return len(self.norms)


def to_numpy(rows: Any) -> NDArray[Any]:
    """A numpy view of rows where there is one (torch on the CPU shares its memory), else a copy."""
    if hasattr(rows, "detach"):  # a torch tensor, recognised without importing torch
        rows = rows.detach().cpu().numpy()
    return np.asarray(rows)


def block(rows: Any, known: Rows | None = None) -> Block:
    """Check rows, leave out what cannot be measured, take each row's length and centre them.

    rows: (n, d) numbers, numpy or torch. known: what is known of each row; by default each row is a
    sequence of its own.

    >>> b = block(np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0]]))
    >>> len(b), b.norms.tolist(), b.zero, b.nonfinite
    (1, [5.0], 1, 1)
    """
    values = to_numpy(rows)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"expected rows of shape (n, d) with d >= 1, got an array of shape {values.shape}.")
    if values.dtype not in (np.float32, np.float64):
        rows = values = values.astype(np.float64 if values.dtype.kind in "iu" else np.float32)
    if known is None:
        known = Rows(np.arange(len(values), dtype=np.uint64))
    wide = values.astype(np.float64, copy=False)
    # A float64 row whose square overflows cannot be measured either: it counts as not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", wide, wide)
    finite, zero = np.isfinite(squares), squares == 0
    keep = finite & ~zero
    if not keep.all():
        rows = values = values[keep]
        wide, squares, known = wide[keep], squares[keep], known.take(keep)
    mean = wide.sum(axis=0) / max(len(wide), 1)
    shift = mean.astype(values.dtype)
    if hasattr(rows, "detach"):
        centred = rows - rows.new_tensor(shift)
        offsets = to_numpy(centred)
    else:
        centred = offsets = values - shift
    return Block(
        values=values,
        wide=wide,
        norms=np.sqrt(squares),
        mean=mean,
        shift=shift.astype(np.float64),
        centred=centred,
        offsets=offsets.astype(np.float64, copy=False),
        rows=known,
        zero=int(zero.sum()),
        nonfinite=int(len(finite) - finite.sum()),
    )
