"""Eigenvalues of symmetric matrices by LAPACK without Python's global lock, and two spectra from one reduction."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def _lapack(name: str, arguments: int) -> Any:
    """A routine of scipy's own LAPACK by its C interface, which lets other threads run.

    `scipy.linalg.lapack.dsytrd` is as fast but keeps Python's global lock, so that layers would wait for each other;
    two calls of `numpy.linalg.eigvalsh` release it and take 1.5 times as long.
    """
    capsule = cython_lapack.__pyx_capi__[name]
    of = ctypes.pythonapi
    of.PyCapsule_GetName.restype, of.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    of.PyCapsule_GetPointer.restype = ctypes.c_void_p
    of.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = of.PyCapsule_GetPointer(capsule, of.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


_DSYTRD, _DSTERF = _lapack("dsytrd", 10), _lapack("dsterf", 4)

#: Columns that LAPACK reduces together, by the size of the space in which it works.
_TOGETHER = 64


def spectra(scatter: Matrix, n: int, mean: Vector) -> Matrix:
    """Eigenvalues of a scatter matrix S, (d, d), and of S + n·mean meanᵀ, both descending, (2, d).

    Turned so that the mean lies along the first axis, S is reduced to a tridiagonal T by reflections that leave that
    axis alone; so the second matrix is T with n‖mean‖² added to its first entry. One reduction, which is nearly all the
    work, serves both, and the mean's size never blurs the first.

    >>> spectra(np.diag([1.0, 3.0]), 2, np.array([0.0, 1.0])).round(12).tolist()
    [[3.0, 1.0], [5.0, 1.0]]
    """
    matrix = np.array(scatter, dtype=np.float64, order="C")
    if matrix.shape != 2 * mean.shape:
        raise ValueError(f"got a scatter matrix of shape {matrix.shape} and a mean of shape {mean.shape}")
    d, length = len(mean), float(np.linalg.norm(mean))
    if length:
        axis = mean / length
        axis[0] += np.copysign(1.0, axis[0])
        axis /= np.linalg.norm(axis)
        image = scatter @ axis
        image -= (axis @ image) * axis
        turn = np.outer(axis, 2.0 * image)
        matrix -= turn
        matrix -= turn.T
    diagonal, off_diagonal = _tridiagonal(matrix)
    both = np.stack([diagonal, diagonal])
    both[1, 0] += n * length**2
    for values in both:
        _call(_DSTERF, d, values, off_diagonal.copy())
    return both[:, ::-1]


def eigenvalues(matrix: Matrix) -> Vector:
    """Eigenvalues of a symmetric matrix, (d, d), which is overwritten; descending, (d,).

    >>> eigenvalues(np.diag([1.0, 3.0])).tolist()
    [3.0, 1.0]
    """
    values, off_diagonal = _tridiagonal(matrix)
    _call(_DSTERF, len(values), values, off_diagonal)
    return values[::-1]


def _tridiagonal(matrix: Matrix) -> tuple[Vector, Vector]:
    """Diagonal and off-diagonal, (d,) each, of a tridiagonal form of a symmetric matrix, which is overwritten."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"got an array of shape {matrix.shape}, expected a square matrix")
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("got NaN or infinity in a matrix, expected finite numbers")
    d = len(matrix)
    diagonal, off_diagonal, reflections = np.empty(d), np.empty(d), np.empty(d)
    space = np.empty(d * _TOGETHER)
    # The matrix is symmetric, so LAPACK, which reads columns, sees the same one.
    _call(_DSYTRD, ctypes.c_char(b"L"), d, matrix, d, diagonal, off_diagonal, reflections, space, len(space))
    return diagonal, off_diagonal


def _call(routine: Any, *arguments: Any) -> None:
    """Call a routine of LAPACK with numbers and arrays by reference; it says by its last argument if it failed."""
    failed = ctypes.c_int(0)
    boxed = [ctypes.c_int(a) if isinstance(a, int) else a for a in arguments]
    routine(*(_address(a) for a in boxed), ctypes.addressof(failed))
    if failed.value:
        raise np.linalg.LinAlgError(f"the eigenvalues did not converge (LAPACK's code {failed.value}).")


def _address(argument: Any) -> int:
    """Where an argument lies in memory; an array that LAPACK would misread is refused."""
    if not isinstance(argument, np.ndarray):
        return ctypes.addressof(argument)
    # The order does not matter to a symmetric matrix, but its numbers must lie one after another.
    flags = argument.flags
    if argument.dtype != np.float64 or not (flags.forc and flags.aligned and flags.writeable):
        raise ValueError(f"LAPACK needs contiguous writable float64 numbers, got {argument.dtype}")
    return int(argument.ctypes.data)
