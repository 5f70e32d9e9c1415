"""The nearest other rows of each row: exact, by large float32 products that float64 distances then settle."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths, mix_ids
from isotrope.compute.threads import map_parts, slice_rows

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

#: What large products are taken in, and what leaves no doubt.
_FAST: np.dtype[Any] = np.dtype(np.float32)
_EXACT: np.dtype[Any] = np.dtype(np.float64)

#: Rows that ask at once, and numbers that are subtracted at once when their distances are settled.
_ASKING, _AT_ONCE = 256, 1 << 20

#: Candidates beyond those wanted, so that rounding in float32 seldom leaves a row in doubt.
_SPARE = 8

#: Lines into which a long row is folded to find its smallest numbers.
_LINES = 16


class Neighbours(NamedTuple):
    """The nearest others of some rows, nearest first. which: (m, k), their places. distance: (m, k), how far."""

    which: Indices
    distance: Matrix


def nearest(
    rows: Matrix,
    k: int,
    of: Indices | None = None,
    among: NDArray[np.bool_] | None = None,
    unit: Indices | None = None,
) -> Neighbours:
    """The k nearest other rows of rows, (n, d), in float64 accuracy, by brute force.

    of: (m,), the rows that ask, by default all. among: (n,), which rows may answer, by default all; more than k.
    unit: (n,), numbers from 0; rows of one unit do not answer each other, by default each row is its own unit.
    Rows at exactly the same distance come in random order, the same one each time, so that no row is preferred.

    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 1).which.tolist()
    [[1], [0], [1]]
    """
    asking = np.arange(len(rows)) if of is None else of
    table = _NeighbourTable(rows, among, unit)
    index, distance = np.empty((len(asking), k), np.int64), np.empty((len(asking), k))

    def ask(part: slice) -> Indices:
        """Find the neighbours of some rows, and where float32 may have missed one."""
        at = asking[part]
        values = table.closeness(at, _FAST)
        found = _smallest(values, min(k + _SPARE, table.answering))
        index[part], distance[part] = table.settle(at, found, k)
        if found.shape[1] == table.answering and unit is None:
            return np.empty(0, np.int64)
        ceiling = np.take_along_axis(values, found, axis=1).max(axis=1)  # of the others none is lower
        return np.flatnonzero(ceiling < table.reach(at, distance[part, -1], _FAST)) + int(part.start)

    doubtful = map_parts(ask, slice_rows(len(asking), _ASKING))
    for place in np.concatenate([*doubtful, np.empty(0, np.int64)]):
        at = asking[place : place + 1]
        close = table.closeness(at, _EXACT) <= table.reach(at, distance[place, -1:], _EXACT)
        index[place], distance[place] = (x[0] for x in table.settle(at, np.flatnonzero(close)[None], k))
    return Neighbours(index, distance)


def without(found: Neighbours, rows: Matrix, gone: NDArray[np.bool_], k: int) -> Neighbours:
    """The k nearest of the rows that are not gone, among themselves, from longer lists of all rows, (n, more than k).

    Where a list is left with fewer than k rows, that row's neighbours are searched again.
    """
    asking = np.flatnonzero(~gone)
    index, distance = found.which[asking], found.distance[asking]
    stays = ~gone[index]
    rank = np.cumsum(stays, axis=1, dtype=np.int32)
    short = np.flatnonzero(rank[:, -1:].ravel() < k)
    first = stays & (rank <= k)
    first[short] = np.arange(first.shape[1]) < k  # of these any k, for they are searched again
    index, distance = index[first].reshape(-1, k), distance[first].reshape(-1, k)
    if len(short):
        index[short], distance[short] = nearest(rows, k, asking[short], ~gone)
    return Neighbours((np.cumsum(~gone) - 1)[index], distance)


class _NeighbourTable:
    """Rows, and the same about their mean in units of their largest coordinate, so that no product overflows."""

    def __init__(self, rows: Matrix, among: NDArray[np.bool_] | None, unit: Indices | None = None) -> None:
        self.rows = rows
        centred = rows - rows.mean(axis=0)
        self.scale = float(np.abs(centred).max(initial=0.0)) or 1.0
        centred /= self.scale
        self.products = {_EXACT: centred, _FAST: centred.astype(_FAST)}
        self.squares = compute_squared_lengths(centred)
        self.absent = None if among is None else ~among
        self.unit = unit
        largest = 1 if unit is None else int(np.bincount(unit).max())
        self.answering = (len(rows) if among is None else int(among.sum())) - largest

    def closeness(self, at: Indices, kind: np.dtype[Any]) -> NDArray[np.floating[Any]]:
        """‖y_j‖² − 2 y_i·y_j of every row j to the rows i, (m, n): the squared distance but for ‖y_i‖²."""
        rows = self.products[kind]
        values = (rows[at] * kind.type(-2)) @ rows.T
        values += self.squares.astype(kind)
        values[np.arange(len(at)), at] = np.inf
        if self.absent is not None:
            values[:, self.absent] = np.inf
        if self.unit is not None:
            values[self.unit[at, None] == self.unit] = np.inf
        return np.asarray(values)

    def reach(self, at: Indices, distance: NDArray[np.float64], kind: np.dtype[Any]) -> NDArray[np.float64]:
        """The closeness, (m,), up to which rounding may hide a row that is nearer than `distance`.

        Such a row is no longer than ‖y_i‖ + distance, and the rounding errors of its product add up like a random walk.
        """
        apart = distance / self.scale
        error = 8.0 * math.sqrt(self.rows.shape[1]) * float(np.finfo(kind).eps)
        return np.asarray(apart**2 - self.squares[at] + error * (np.sqrt(self.squares[at]) + apart) ** 2)

    def settle(self, at: Indices, candidates: Indices, k: int) -> tuple[Indices, Matrix]:
        """The k nearest of each row's candidates, (m, c), and their distances, from differences in float64."""
        squares = np.empty(candidates.shape)
        for part in slice_rows(len(at), max(1, _AT_ONCE // (candidates.shape[1] * self.rows.shape[1] + 1))):
            apart = self.rows[candidates[part]] - self.rows[at[part], None]
            squares[part] = np.einsum("ijk,ijk->ij", apart, apart)
        tie = mix_ids((candidates + at[:, None] * len(self.rows)).astype(np.uint64), 0)
        order = np.lexsort((tie, squares))[:, :k]
        return np.take_along_axis(candidates, order, axis=1), np.sqrt(np.take_along_axis(squares, order, axis=1))


def _smallest(values: NDArray[np.floating[Any]], k: int) -> Indices:
    """Where the k smallest numbers of each row are, (m, n) -> (m, k), in no order."""
    m, n = values.shape
    width = n // _LINES
    if width <= 2 * k:
        return np.argpartition(values, k - 1, axis=1)[:, :k]
    # Folded into lines, the k smallest numbers stand in the k columns of smallest minimum: little is left to sort.
    columns = np.argpartition(values[:, : width * _LINES].reshape(m, _LINES, width).min(axis=1), k - 1, axis=1)[:, :k]
    folded = (columns[:, None] + width * np.arange(_LINES)[:, None]).reshape(m, -1)
    rest = np.broadcast_to(np.arange(width * _LINES, n), (m, n - width * _LINES))
    at = np.concatenate([folded, rest], axis=1)
    kept = np.argpartition(np.take_along_axis(values, at, axis=1), k - 1, axis=1)[:, :k]
    return np.take_along_axis(at, kept, axis=1)
