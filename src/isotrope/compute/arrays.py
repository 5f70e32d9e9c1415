"""Rows in numpy and torch: what they are, and conversions between them, without importing torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError


def is_tensor(rows: Any) -> bool:
    """Whether rows are a torch tensor; one can only exist where torch is imported already."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(rows, torch.Tensor)


def to_numpy(rows: Any) -> NDArray[Any]:
    """A numpy view of rows where there is one (torch on the CPU shares its memory), else a copy."""
    return np.asarray(rows.detach().cpu().numpy() if is_tensor(rows) else rows)


def to_float64(values: Any) -> NDArray[np.float64]:
    """Numbers as a float64 array of their own."""
    return np.array(values.detach().double().cpu().numpy() if is_tensor(values) else values, dtype=np.float64)


def to_matrix(rows: Any) -> Any:
    """Rows as floats, (n, d): a tensor stays one, a float type stays as it is, all else becomes a float64 array.

    Examples:
        >>> to_matrix([[1, 2], [3, 4]])
        array([[1., 2.],
               [3., 4.]])
    """
    if is_tensor(rows):
        floats = rows if rows.is_floating_point() else rows.double()
        _check_shape(tuple(floats.shape))
        return floats
    if hasattr(rows, "tocsr"):
        raise InputError("got a sparse matrix, expected dense rows: call toarray() on it.")
    values = np.asarray(rows)
    if values.dtype.kind == "O":
        values = values.astype(np.float64)
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported: got complex numbers, expected real ones.")
    if values.dtype.kind not in "fiub":
        raise InputError(f"got an array of type {values.dtype}, expected numbers.")
    _check_shape(values.shape)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def compute_lengths(rows: Any) -> Any:
    """Euclidean length of each row, (n, 1), computed in float64 where rows are numpy.

    Tensors keep their type, because some devices have no float64. They are squared in units of the row's largest
    coordinate, so that no square vanishes.
    """
    if is_tensor(rows):
        largest = rows.detach().abs().amax(dim=1, keepdim=True)
        scale = largest.where(largest > 0, largest.new_ones(()))
        return (rows / scale).norm(dim=1, keepdim=True) * scale
    return np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)


def compute_squared_lengths(rows: NDArray[Any]) -> NDArray[Any]:
    """Squared length of each row, (n, d) -> (n,)."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def to_unit_rows(rows: Any) -> Any:
    """Rows divided by their lengths, (n, d); rows of zeros stay zero.

    Examples:
        >>> to_unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = compute_lengths(rows)
    if is_tensor(rows):
        return rows / lengths.where(lengths > 0, lengths.new_ones(()))
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(rows.dtype)


def mix_ids(ids: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A well-mixed 64-bit hash of each id (splitmix64, Steele, Lea and Flood 2014), shape (n,) -> (n,).

    Different ids never share a hash, so the smallest hashes are always well defined.

    >>> mix_ids(np.array([0, 1], dtype=np.uint64), seed=0).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((seed + 1) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def check_width(rows: Any, expected: int, what: str) -> None:
    """Refuse rows that are not as wide as what is applied to them."""
    if rows.shape[1] != expected:
        raise InputError(
            f"X has {rows.shape[1]} features, but {what} is expecting {expected} features as input; "
            "give rows of the width it was fitted on."
        )


def check_finite(rows: Any) -> None:
    """Refuse rows with NaN or infinity, which would otherwise spread."""
    finite = rows.isfinite() if is_tensor(rows) else np.isfinite(rows)
    bad = len(rows) - int(finite.all(1).sum())
    if bad:
        raise InputError(f"{bad:,} of {len(rows):,} rows hold NaN or inf, expected numbers: correct or remove them.")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise InputError(
            f"got an array of shape {shape}, expected rows of shape (n, d). Reshape your data: x[None, :] is one row."
        )
    if shape[1] == 0:
        raise InputError(f"got 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
