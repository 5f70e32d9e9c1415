"""Arrays in files: rows as float16 numbers, and checks of what is read before anything is computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import slice_rows
from isotrope.errors import StoreError


class DamagedArrays(StoreError):
    """Arrays from a file are not what they should be."""


#: The largest count that a file may claim: up to it, float64 tells every whole number from the next.
MOST = 2**53

#: The largest number of a row that a scan lets in, and of a sum of squares of such numbers.
LARGEST, LARGEST_SQUARE = 1e70, 1e156

#: What the largest number of a row becomes: small ones then keep their digits too, down to 2e-9 of it.
_TOP = 2.0**15

#: No number of a row is off by more than this share of itself, or this share of the largest number of its row.
RELATIVE, ABSOLUTE = 2.0**-11, 2.0**-40

#: Rows that are encoded at a time, so that temporaries stay small.
_ENCODED = 4096


def require(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    dtype: Any,
    shape: tuple[int | None, ...],
    *,
    least: float | None = None,
    most: float | None = None,
    within: float | None = None,
    finite: bool = True,
) -> NDArray[Any]:
    """An array of the expected type, shape and range, contiguous and writable.

    Args:
        arrays: What was read, by name.
        name: Which array.
        dtype: The expected type, or a tuple of types.
        shape: The expected shape; None stands for any length.
        least, most: The range that every value must be in.
        within: The largest absolute value.
        finite: Whether NaN and infinities are refused.

    Raises:
        StoreError: If the array is missing or anything else than expected.

    >>> require({"n": np.array([3, -1])}, "n", np.int64, (2,), least=0)
    Traceback (most recent call last):
    isotrope.statistics.saved_arrays.DamagedArrays: the saved array 'n' holds -1, expected at least 0; ...
    """
    if within is not None:
        least, most = -within if least is None else least, within
    types = [np.dtype(kind) for kind in (dtype if isinstance(dtype, tuple) else (dtype,))]
    if name not in arrays:
        raise build_damage_error(f"the saved array {name!r} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if array.dtype not in types or not fits:
        expected = " or ".join(map(str, types))
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        raise build_damage_error(
            f"the saved array {name!r} is {array.dtype} of shape {array.shape}, "
            f"expected {expected} of shape ({lengths})"
        )
    if finite and array.dtype.kind == "f" and not _is_finite(array):
        raise build_damage_error(f"the saved array {name!r} holds NaN or infinity, expected finite numbers")
    if least is not None and array.size and array.min().item() < least:
        raise build_damage_error(f"the saved array {name!r} holds {array.min()}, expected at least {least:g}")
    if most is not None and array.size and array.max().item() > most:
        raise build_damage_error(f"the saved array {name!r} holds {array.max()}, expected at most {most:g}")
    return np.require(array, requirements=["C", "A", "W"])


def _is_finite(array: NDArray[Any]) -> bool:
    """Whether no number is NaN or infinite, without a table of truth values as long as the array."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def require_counts(arrays: Mapping[str, NDArray[Any]], name: str, length: int | None) -> NDArray[np.int64]:
    """An array of counts, (length,)."""
    return require(arrays, name, np.int64, (length,), least=0, most=MOST)


def require_consistent(consistent: bool, what: str) -> None:
    """Refuse numbers that contradict each other; what: the short fact."""
    if not consistent:
        raise build_damage_error(what)


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Say in which file the arrays are that are refused."""
    try:
        yield
    except DamagedArrays as error:
        raise StoreError(f"{str(path)!r} cannot be used: {error}") from error


def build_damage_error(what: str) -> DamagedArrays:
    """The error for arrays that no version wrote."""
    return DamagedArrays(f"{what}; the file is damaged or was edited, so make it again.")


def encode_rows(rows: NDArray[np.floating[Any]], mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Rows, (n, d), as arrays for saving: half, scale, less_mean and mean.

    A row is stored as it is or less the mean, whichever is smaller. So neither a mean far larger than the spread nor a
    row far shorter than the mean loses its digits: what is stored is right to `RELATIVE` of each of its numbers.

    Args:
        rows: float32 or float64.
        mean: Of all rows, (d,).

    >>> rows = np.array([[1000.0, 1000.5], [0.25, 0.0]])
    >>> decode_rows(encode_rows(rows, np.array([1000.0, 1000.0]))).tolist()
    [[1000.0, 1000.5], [0.25, 0.0]]
    """
    n, d = rows.shape
    centre = mean.astype(rows.dtype)
    half, scale, less_mean = np.empty((n, d), np.float16), np.ones(n, rows.dtype), np.zeros(n, bool)
    for part in slice_rows(n, _ENCODED):
        offsets = rows[part] - centre
        less_mean[part] = np.abs(offsets).max(axis=1) < np.abs(rows[part]).max(axis=1)
        stored = np.where(less_mean[part, None], offsets, rows[part])
        top = np.abs(stored).max(axis=1)
        scale[part] = np.where(top > 0, top / _TOP, 1.0)
        # The scale of a row that is extremely short would have no digits left.
        scale[part] = np.maximum(scale[part], np.finfo(rows.dtype).tiny)
        half[part] = stored / scale[part, None]
    return {"half": half, "scale": scale, "less_mean": less_mean, "mean": centre}


def decode_rows(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.floating[Any]]:
    """The rows that `encode_rows` stored, in the type in which they came, (n, d)."""
    half = require(arrays, "half", np.float16, (None, None))
    n, d = half.shape
    scale = require(arrays, "scale", (np.float32, np.float64), (n,), least=0, most=LARGEST)
    mean = require(arrays, "mean", scale.dtype, (d,), within=LARGEST)
    less_mean = require(arrays, "less_mean", np.bool_, (n,))
    rows: NDArray[np.floating[Any]] = half * scale[:, None]
    rows[less_mean] += mean
    return require({"rows": rows}, "rows", scale.dtype, (n, d), within=LARGEST)
