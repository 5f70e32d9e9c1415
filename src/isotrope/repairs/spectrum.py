"""The directions in which rows lie, and how strong each is, from their moments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics import Moments

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def principal(m: Moments) -> tuple[Vector, Matrix]:
    """Eigenvalues of the scatter, descending, (r,), and their directions, (d, r): those that are not rounding.

    >>> from isotrope.statistics import block
    >>> values, directions = principal(Moments.of(block(np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]))))
    >>> values.tolist(), directions.tolist()
    ([8.0], [[1.0], [0.0]])
    """
    rank = int(np.count_nonzero(m.eigenvalues[: min(m.n - 1, m.d)]))
    values, vectors = np.linalg.eigh(m.scatter)
    return values[::-1][:rank], _turned(vectors[:, ::-1][:, :rank])


def singular(m: Moments) -> tuple[Vector, Matrix]:
    """Singular values of the uncentred rows, descending, (r,), and their right singular vectors, (d, r).

    Through a factor of the sums of products, in which spread and mean stand apart: added up, a mean far larger than
    the spread would drown the spread's digits.

    >>> from isotrope.statistics import block
    >>> values, directions = singular(Moments.of(block(np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 2.0]]))))
    >>> (values**2).round(9).tolist(), np.abs(directions).round(9).tolist()
    ([18.0, 4.0], [[1.0, 0.0], [0.0, 1.0]])
    """
    values, directions = principal(m)
    inside = directions.T @ m.mean
    outside = m.mean - directions @ inside
    outside -= directions @ (directions.T @ outside)  # once more: a layer norm leaves a mean nearly within their span
    beyond = float(np.linalg.norm(outside))
    rank = len(values)
    factor = np.vstack([np.diag(np.sqrt(values)), np.sqrt(m.n) * inside])
    if rank < m.d and beyond > 0:
        directions = np.column_stack([directions, outside / beyond])
        factor = np.column_stack([factor, np.append(np.zeros(rank), np.sqrt(m.n) * beyond)])
        # Rounding tilts the directions by so much, and lifts a mean that lies among them out of their span: then the
        # mean shows how they are tilted, and is no direction more.
        tilt = 32 * _EPS * values[0] / values[-1]
        rank += beyond > tilt * float(np.linalg.norm(m.mean))
    _, found, vectors = np.linalg.svd(factor, full_matrices=False)
    rank = min(rank, m.n)
    return found[:rank], _turned(directions @ vectors[:rank].T)


def _turned(directions: Matrix) -> Matrix:
    """Directions, (d, r), each with its largest coordinate positive: which of both signs is found is chance."""
    largest = np.abs(directions).argmax(axis=0)
    return directions * np.where(directions[largest, np.arange(directions.shape[1])] < 0, -1.0, 1.0)
