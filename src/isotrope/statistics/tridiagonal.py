"""Eigenvalues beside which other threads run, and two spectra from one reduction: of centred products, and of the same
products about the origin."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def _lapack(name: str, arguments: int) -> Any:
    """A routine of scipy's own LAPACK by its C interface; other threads run beside it, as they do not in Python's."""
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
    d, length = len(mean), float(np.linalg.norm(mean))
    matrix = scatter.copy()
    if length:
        axis = mean / length
        axis[0] += np.copysign(1.0, axis[0])
        axis /= np.linalg.norm(axis)
        image = scatter @ axis
        image -= (axis @ image) * axis
        turn = np.outer(axis, 2.0 * image)
        matrix -= turn
        matrix -= turn.T
    diagonal, beside = _tridiagonal(matrix)
    both = np.stack([diagonal, diagonal])
    both[1, 0] += n * length**2
    for values in both:
        _call(_DSTERF, d, values, beside.copy())
    return both[:, ::-1]


def eigenvalues(matrix: Matrix) -> Vector:
    """Eigenvalues of a symmetric matrix, (d, d), which is written over; descending, (d,).

    >>> eigenvalues(np.diag([1.0, 3.0])).tolist()
    [3.0, 1.0]
    """
    values, beside = _tridiagonal(matrix)
    _call(_DSTERF, len(values), values, beside)
    return values[::-1]


def _tridiagonal(matrix: Matrix) -> tuple[Vector, Vector]:
    """Diagonal and what is beside it, (d,) each, of a tridiagonal form of a symmetric matrix, which is written over."""
    d = len(matrix)
    diagonal, beside, reflections = np.empty(d), np.empty(d), np.empty(d)
    space = np.empty(d * _TOGETHER)
    # The matrix is symmetric, so LAPACK, which reads columns, sees the same one.
    _call(_DSYTRD, ctypes.c_char(b"L"), d, matrix, d, diagonal, beside, reflections, space, len(space))
    return diagonal, beside


def _call(routine: Any, *arguments: Any) -> None:
    """Call a routine of LAPACK with numbers and arrays by reference; it says by its last argument if it failed."""
    failed = ctypes.c_int(0)
    boxed = [ctypes.c_int(a) if isinstance(a, int) else a for a in arguments]
    routine(
        *(a.ctypes.data if isinstance(a, np.ndarray) else ctypes.addressof(a) for a in boxed), ctypes.addressof(failed)
    )
    if failed.value:
        raise np.linalg.LinAlgError(f"the eigenvalues did not converge (LAPACK's code {failed.value}).")
