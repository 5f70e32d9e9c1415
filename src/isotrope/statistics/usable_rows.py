"""The usable rows of one layer in one batch, with their lengths: what every statistic starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import is_tensor, to_numpy
from isotrope.compute.threads import slice_rows
from isotrope.errors import InputError
from isotrope.sources.batch import Rows

#: Squared lengths outside these count as zero and as not finite: their own squares would leave float64's range.
_SMALLEST, _LARGEST = 1e-140, 1e140

#: Squared lengths of the longest row between which products of float32 rows neither overflow nor vanish.
_FLOAT32_SAFE = (1e-20, 1e30)

#: Squared length of the shortest row above which its inverse length is a float32 number.
_FLOAT32_SHORTEST = 1e-70

#: Scatter of one unit row below which 1 − ‖mean‖² would lose digits that the rows have.
_NEARLY_PARALLEL = 1e-2

#: Unit rows held at once: few enough to stay in the cache.
_UNIT_ROWS = 256


@dataclass(frozen=True)
class UsableRows:
    """Rows that are finite and not zero, centred once for all statistics, and how many were left out.

    values: (n, d), the rows, float32 (fast) or float64 (exact).
    norms: (n,), Euclidean length of each row. mean: (d,). Both in float64.
    shift: (d,), the mean rounded to the rows' own type, so that rows minus shift is exact where they are close.
    centred: (n, d), rows − shift in their own type, on their own device: what large products are taken of.
    zero, nonfinite: how many rows were left out; zero_rows, nonfinite_rows: what is known of these, None without any.
    """

    values: NDArray[np.floating[Any]]
    norms: NDArray[np.float64]
    mean: NDArray[np.float64]
    shift: NDArray[np.float64]
    centred: Any
    rows: Rows
    zero: int = 0
    nonfinite: int = 0
    zero_rows: Rows | None = None
    nonfinite_rows: Rows | None = None

    def __len__(self) -> int:
        return len(self.norms)

    @cached_property
    def wide(self) -> NDArray[np.float64]:
        """The rows in float64 numpy, (n, d), for sums by token type and by sequence.

        Sums start from the rows themselves, not from `centred`: of a row far shorter than the shift nothing would be
        left, and a row far longer than the shift would be rounded.
        """
        return self.values.astype(np.float64, copy=False)


def on_cpu_as_numpy(rows: Any) -> Any:
    """Rows in the CPU's memory as a numpy array that shares it; rows elsewhere as they are."""
    if not is_tensor(rows) or str(rows.device) != "cpu" or rows.element_size() < 4:
        return rows
    return rows.detach().numpy()


def prepare_rows(rows: Any, known: Rows | None = None) -> UsableRows:
    """Check rows, leave out those that cannot be measured, compute their lengths and centre them.

    Args:
        rows: Numbers of shape (n, d), a numpy array or a torch tensor.
        known: What is known of each row; None where each row is a sequence of its own.

    Returns:
        The rows that are finite and not zero: what every statistic is computed from, as in `Moments.of`.

    Examples:
        >>> rows = prepare_rows(np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0]]))
        >>> len(rows), rows.norms.tolist(), rows.zero, rows.nonfinite
        (1, [5.0], 1, 1)
    """
    if is_tensor(rows):
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
    squares, mean, shift, centred = _center(rows)
    finite, zero = squares < _LARGEST, squares < _SMALLEST
    zero_rows = nonfinite_rows = None
    if not (finite & ~zero).all():
        keep = finite & ~zero
        zero_rows, nonfinite_rows = known.take(zero), known.take(~finite)
        values, known = values[keep], known.take(keep)
        squares, mean, shift, centred = _center(values)
    if len(squares) and not _fits_float32(squares):
        values = values.astype(np.float64, copy=False)
        squares, mean, shift, centred = _center(values)
    return UsableRows(
        values=values,
        norms=np.sqrt(squares),
        mean=mean,
        shift=shift,
        centred=centred,
        rows=known,
        zero=int(zero.sum()),
        nonfinite=int(len(finite) - finite.sum()),
        zero_rows=zero_rows,
        nonfinite_rows=nonfinite_rows,
    )


def compute_unit_moments(rows: UsableRows) -> tuple[NDArray[np.float64], float]:
    """Mean of u = x/‖x‖, (d,), and Σ‖u − mean‖², both in float64 whatever the type of the rows.

    Unit rows are summed directly. Summing them about the mean row instead would lose every row that is far shorter than
    the mean row. Nearly parallel unit rows are centred before they are squared, so that their small scatter keeps its
    digits.

    >>> compute_unit_moments(prepare_rows(np.array([[3.0, 0.0], [0.0, 1e-20]])))
    (array([0.5, 0.5]), 1.0)
    """
    n, inverse = len(rows), 1.0 / rows.norms
    # einsum widens a few rows at a time, and uses no threads, which would compete with the large products.
    mean = np.einsum("i,ij->j", inverse, rows.values) / n
    scatter = n * (1.0 - float(mean @ mean))
    if scatter > _NEARLY_PARALLEL * n:
        return mean, scatter
    rest, squares = np.zeros_like(mean), 0.0
    for part in slice_rows(n, _UNIT_ROWS):
        away = rows.values[part] * inverse[part, None] - mean
        rest += away.sum(axis=0)
        squares += float(np.vdot(away, away))
    rest /= n
    return mean + rest, max(0.0, squares - n * float(rest @ rest))


def _fits_float32(squares: NDArray[np.float64]) -> bool:
    """Whether float32 holds the products and the inverse lengths of rows of these squared lengths, (n,)."""
    return bool(_FLOAT32_SAFE[0] < squares.max() < _FLOAT32_SAFE[1] and squares.min() > _FLOAT32_SHORTEST)


def _center(rows: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Any]:
    """Squared lengths (n,), mean (d,), shift (d,) and rows minus shift (n, d)."""
    if is_tensor(rows) and rows.is_floating_point():
        import torch

        near = rows.mean(0)  # any shift close to the mean will do: what it misses is summed up from small numbers
        if bool(near.isfinite().all()):
            centred = rows - near
            # Lengths are summed in float64 without a float64 copy of the rows, whose memory would cost more than they.
            norms = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
            shift, squares = _float64(near), _float64(norms.square())
            return squares, shift + _float64(centred.mean(0)), shift, centred
    wide = to_numpy(rows).astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.asarray(np.einsum("ij,ij->i", wide, wide))
        mean = wide.sum(axis=0) / max(len(wide), 1)
        narrow = mean.astype(to_numpy(rows).dtype)
        return squares, mean, narrow.astype(np.float64), to_numpy(rows) - narrow


def _float64(tensor: Any) -> NDArray[np.float64]:
    return to_numpy(tensor).astype(np.float64)
