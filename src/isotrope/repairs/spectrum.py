"""The directions of rows from their moments: how strong each is, and which the precision of stored rows resolves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics import Moments

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)

#: One unit in the last place of a number of size 1. Rows are rounded when they are stored, and before that in the
#: computation that made them, so the error is taken as a whole unit and not as the third of one that storing costs.
UNITS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

#: Standard deviation of rounding to whole numbers. Wider integers are counts, not rounded embeddings.
STEP = 12.0**-0.5
INTEGERS = ("int8", "uint8", "int16", "uint16")

#: Values that are enough to tell in which type they were stored before.
_ENOUGH = 1_000

#: A direction is resolved where rows are this many times stronger than their rounding.
LEAST = 4.0


def compute_principal_directions(m: Moments) -> tuple[Vector, Matrix]:
    """Eigenvalues of the scatter, descending, (r,), and their directions, (d, r): those that are not rounding.

    >>> from isotrope.statistics import prepare_rows
    >>> moments = Moments.of(prepare_rows(np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0]])))
    >>> values, directions = compute_principal_directions(moments)
    >>> values.tolist(), directions.tolist()
    ([8.0], [[1.0], [0.0]])
    """
    rank = int(np.count_nonzero(m.eigenvalues[: min(m.n - 1, m.d)]))
    values, vectors = np.linalg.eigh(m.scatter)
    return values[::-1][:rank], _fix_signs(vectors[:, ::-1][:, :rank])


def compute_singular_directions(m: Moments) -> tuple[Vector, Matrix]:
    """Singular values of the uncentred rows, descending, (r,), and their right singular vectors, (d, r).

    Through a factor of the sums of products, in which spread and mean stand apart: added up, a mean far larger than
    the spread would drown the spread's digits.

    >>> from isotrope.statistics import prepare_rows
    >>> moments = Moments.of(prepare_rows(np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 2.0]])))
    >>> values, directions = compute_singular_directions(moments)
    >>> (values**2).round(9).tolist(), np.abs(directions).round(9).tolist()
    ([18.0, 4.0], [[1.0, 0.0], [0.0, 1.0]])
    """
    values, directions = compute_principal_directions(m)
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
    return found[:rank], _fix_signs(directions @ vectors[:rank].T)


def _fix_signs(directions: Matrix) -> Matrix:
    """Directions, (d, r), each with its largest coordinate positive: which of both signs is found is chance."""
    largest = np.abs(directions).argmax(axis=0)
    return directions * np.where(directions[largest, np.arange(directions.shape[1])] < 0, -1.0, 1.0)


class Storage(NamedTuple):
    """The type in which rows are stored; scale: what they were multiplied by since, such as one over their length."""

    kind: str
    scale: float = 1.0


def find_coarsest(types: Iterable[str]) -> str:
    """The storage type that rounds most; types without rounding of their own count as float64.

    >>> find_coarsest(["float32", "float16"]), find_coarsest(["float32", "int8"]), find_coarsest(["int64"])
    ('float16', 'int8', 'float64')
    """
    order = [*UNITS, *reversed(INTEGERS)]
    return max((kind if kind in order else "float64" for kind in types), key=order.index, default="float64")


def find_narrowest(values: NDArray[Any], kind: str) -> str:
    """The narrowest float type that holds all values of some rows exactly: rows may have been stored in it before.

    Few values, and whole numbers, fit into any type and say nothing.

    >>> rows = np.random.default_rng(0).normal(size=(50, 40))
    >>> find_narrowest(rows.astype(np.float16).astype(np.float64), "float64"), find_narrowest(rows, "float64")
    ('float16', 'float64')
    """
    if kind not in ("float64", "float32") or values.size < _ENOUGH or (values == np.rint(values)).all():
        return kind
    with np.errstate(over="ignore"):
        for narrow in (np.float16, np.float32):
            if (values.astype(narrow) == values).all():
                return str(np.dtype(narrow))
    return kind


def resolve_storage_type(moments: Moments, described: Iterable[dict[str, object]] = ()) -> str:
    """The storage type that sources describe, otherwise the one in which products of the rows were taken."""
    types = [kind for source in described for kind in str(source.get("dtype") or "").split(", ") if kind]
    if types:
        return find_coarsest(types)
    return "float32" if moments.resolution > UNITS["float64"] else "float64"


def compute_rounding_variances(moments: Moments, storage: Storage) -> Vector:
    """The variance that rounding to a storage type adds to each coordinate, (d,).

    Floats round by a share of each number. A coordinate far smaller than the others is no more precise than
    they are: rows are made, and used, in sums over all coordinates. So none counts as smaller than the median one.

    >>> from isotrope.statistics import prepare_rows
    >>> rows = np.array([[1.0, 3.0, 0.0], [1.0, -3.0, 0.0]])
    >>> (compute_rounding_variances(Moments.of(prepare_rows(rows)), Storage("float16")) * 4.0**10).round(9).tolist()
    [1.0, 9.0, 1.0]
    """
    if storage.kind in INTEGERS:
        return np.full(moments.d, (STEP * storage.scale) ** 2)
    energies = np.diagonal(moments.scatter) / max(moments.n, 1) + moments.mean**2
    return np.asarray(UNITS[storage.kind] ** 2 * np.maximum(energies, np.median(energies)))


def find_resolved(strengths: Vector, directions: Matrix, moments: Moments, storage: Storage) -> NDArray[np.bool_]:
    """Which directions, (d, r), are stronger than the rounding of the rows, (r,).

    Args:
        strengths: root mean square, or standard deviation, of the rows along each direction, (r,).
    """
    rounding = np.sqrt(compute_rounding_variances(moments, storage) @ directions**2)
    return np.asarray(strengths > LEAST * rounding)


def leave_alone(gains: Vector, resolved: NDArray[np.bool_]) -> Vector:
    """Gains, strongest direction first, (r,); a direction that is not resolved moves with the strongest.

    So it keeps its size relative to the strongest direction, whatever the scale of the rows: what is in it, noise for
    the most part, is neither amplified nor turned round.

    >>> leave_alone(np.array([1.0, 5.0, -9e6]), np.array([True, True, False])).tolist()
    [1.0, 5.0, 1.0]
    """
    return np.where(resolved, gains, gains[:1])
