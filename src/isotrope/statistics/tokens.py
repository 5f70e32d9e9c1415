"""Count, mean, variance and mean direction of the rows of each token type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.compute.threads import slice_rows
from isotrope.errors import InputError, MergeError
from isotrope.sources.batch import Types
from isotrope.statistics.saved_arrays import LARGEST, LARGEST_SQUARE, MOST, require, require_consistent
from isotrope.statistics.usable_rows import UsableRows

Vector = NDArray[np.float64]
Index = NDArray[np.int64]

#: Token types, and rows, handled at a time, so that temporaries stay small.
_TYPES_AT_ONCE, _ROWS_AT_ONCE = 4096, 256

#: Rows of one type whose spread is below this share of their squared length are equal but for rounding.
_SAME = 1e-13

_COLUMNS = ("n", "scatters", "energy", "means", "units")


class TokenTable(NamedTuple):
    """Per token type t, (k,) each: n_t, Q_t = E‖x‖², M_t = ‖μ_t‖², V_t = E‖x − μ_t‖², B_t = ‖μ_t − μ‖², ‖Σu‖².

    `mean_square` is ‖μ‖² and `unit_square` is ‖Σu‖², of all rows; `seen` is n_t before any rows were left out.
    """

    types: Index
    n: Index
    q: Vector
    m: Vector
    v: Vector
    b: Vector
    unit_squares: Vector
    mean_square: float
    unit_square: float
    seen: Index

    def select(self, keep: NDArray[np.bool_]) -> TokenTable:
        """The rows of the types marked in a mask of shape (k,)."""
        return TokenTable._make(part[keep] if isinstance(part, np.ndarray) else part for part in self)


@dataclass(eq=False)
class TokenStatistics:
    """Count, mean, scatter and sum of directions of the occurrences of each token type.

    A value with an empty element `TokenStatistics.empty(d)` and `+`; `+=` reuses memory. Memory grows with the
    number of types. Means and scatters are merged centred and in float64, so that nothing cancels.

    Attributes:
        types: (k,) int64, the token types in ascending order.

    References:
        Yamagiwa and Shimodaira 2024, Algorithm 1
    """

    types: Index
    _slot: Index  # the row of each type in the tables below, which have room for more types
    _n: Index  # occurrences
    _scatters: Vector  # Σ‖x − μ_t‖²
    _energy: Vector  # Σ‖x‖²
    _means: NDArray[np.float64]  # μ_t, (room, d)
    _units: NDArray[np.floating[Any]]  # Σx/‖x‖, (room, d), in the rows' own type

    @classmethod
    def empty(cls, d: int) -> TokenStatistics:
        none, number = np.empty(0, np.int64), np.empty(0)
        return cls(none, none, none, number, number, np.empty((0, d)), np.empty((0, d), np.float32))

    @classmethod
    def of(cls, rows: UsableRows) -> TokenStatistics:
        """The statistics of some rows, by two sparse products (types × rows) with the rows."""
        if rows.rows.token is None:
            raise InputError("these rows have no token types; token statistics need rows from a text model.")
        n, d = rows.values.shape
        if n == 0:
            return cls.empty(d)
        types = rows.rows.types
        k, count = len(types.ids), np.diff(types.begin)
        means = rows.rows.by_type @ rows.wide
        means /= count[:, None]
        inverse = (1.0 / rows.norms).astype(rows.values.dtype)[types.order]
        return cls(
            types=types.ids.astype(np.int64, copy=False),
            _slot=np.arange(k),
            _n=count,
            _scatters=_sum_by_type(types, _compute_squared_distances(rows.wide, means, types)),
            _energy=_sum_by_type(types, rows.norms**2),
            _means=means,
            _units=sparse.csr_array((inverse, types.order, types.begin), shape=(k, n)) @ rows.values,
        )

    def __len__(self) -> int:
        """How many token types were seen."""
        return len(self.types)

    @property
    def d(self) -> int:
        return int(self._means.shape[1])

    @property
    def n(self) -> Index:
        return self._n[self._slot]

    @cached_property
    def table(self) -> TokenTable:
        """What the measures over token types need, one row per type."""
        return self.table_of(np.ones(len(self), dtype=bool))

    def table_of(self, keep: NDArray[np.bool_]) -> TokenTable:
        """The table of the types marked in a mask of shape (k,), as if there were no others."""
        slot = self._slot[keep]
        n, k = self._n[slot], len(slot)
        mean = np.zeros(self.d)
        for part in slice_rows(k, _TYPES_AT_ONCE):
            mean += np.einsum("i,ij->j", n[part] / n.sum(), self._means[slot[part]])
        m, b, unit = np.empty((3, k))
        units = np.zeros(self.d)
        for part in slice_rows(k, _TYPES_AT_ONCE):
            means = self._means[slot[part]]
            m[part], b[part] = compute_squared_lengths(means), compute_squared_lengths(means - mean)
            wide = self._units[slot[part]].astype(np.float64)
            units += wide.sum(axis=0)
            unit[part] = compute_squared_lengths(wide)
        return TokenTable(
            types=self.types[keep],
            n=n,
            q=self._energy[slot] / n,
            m=m,
            v=_compute_variances(self._scatters[slot], self._energy[slot], n),
            b=b,
            unit_squares=unit,
            mean_square=float(mean @ mean),
            unit_square=float(units @ units),
            seen=n,
        )

    def table_without(self, part: TokenStatistics) -> TokenTable:
        """The table of these rows less those of `part`, which are among them, by changing only its types."""
        whole = self.table
        at = np.searchsorted(self.types, part.types)
        here, there = self._slot[at], part._slot
        gone = part._n[there]
        left = np.maximum(self._n[here] - gone, 1)  # types that vanish are dropped below
        delta = part._means[there] - self._means[here]
        scatters = (
            self._scatters[here] - part._scatters[there] - self._n[here] * gone / left * compute_squared_lengths(delta)
        )
        means = self._means[here] - (gone / left)[:, None] * delta
        n, q, m, v, unit = whole.n.copy(), whole.q.copy(), whole.m.copy(), whole.v.copy(), whole.unit_squares.copy()
        n[at] -= gone
        q[at] = (self._energy[here] - part._energy[there]) / left
        m[at] = compute_squared_lengths(means)
        v[at] = _compute_variances(scatters, self._energy[here], left)
        unit[at] = compute_squared_lengths((self._units[here] - part._units[there]).astype(np.float64))
        # The overall mean moves by a little, so ‖μ_t − μ‖² of the other types follows from one product.
        rows = max(int(n.sum()), 1)
        move = (gone.sum() * self._mean - np.einsum("i,ij->j", gone.astype(np.float64), part._means[there])) / rows
        mean = self._mean + move
        along = (self._means[: len(self)] @ move)[self._slot] - float(self._mean @ move)
        b = np.maximum(whole.b - 2.0 * along + float(move @ move), 0.0)
        b[at] = compute_squared_lengths(means - mean)
        units = self._unit_sum - part._units[there].sum(axis=0, dtype=np.float64)
        left_over = TokenTable(self.types, n, q, m, v, b, unit, float(mean @ mean), float(units @ units), whole.n)
        return left_over.select(n > 0)

    @cached_property
    def _mean(self) -> Vector:
        """Mean of all rows, (d,)."""
        n = self._n[: len(self)]
        return np.asarray(np.einsum("i,ij->j", n / max(int(n.sum()), 1), self._means[: len(self)]))

    @cached_property
    def _unit_sum(self) -> Vector:
        """Σx/‖x‖ of all rows, (d,)."""
        return np.asarray(self._units[: len(self)].sum(axis=0, dtype=np.float64))

    def check(self, other: TokenStatistics) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge token rows of width {other.d} with rows of width {self.d}.")

    def __add__(self, other: TokenStatistics) -> TokenStatistics:
        result = self.copy()
        result += other
        return result

    def __iadd__(self, other: TokenStatistics) -> TokenStatistics:
        self.check(other)
        for name in ("table", "_mean", "_unit_sum"):
            self.__dict__.pop(name, None)
        if other._units.dtype.itemsize > self._units.dtype.itemsize:
            self._units = self._units.astype(other._units.dtype)
        slots = self._slots_for(other.types)
        # The tables of a new statistic are in order: a slice of them is no copy.
        ordered = np.array_equal(other._slot, np.arange(len(other)))
        for part in slice_rows(len(other), _TYPES_AT_ONCE):
            self._merge(slots[part], other, part if ordered else other._slot[part])
        return self

    def _merge(self, here: Index, other: TokenStatistics, there: Index | slice) -> None:
        """Add rows `there` of the other's tables to rows `here` of these (Chan, Golub and LeVeque 1983)."""
        n, more = self._n[here], other._n[there]
        share = more / (n + more)
        means = self._means[here]
        delta = other._means[there] - means
        self._scatters[here] += other._scatters[there] + share * n * compute_squared_lengths(delta)
        delta *= share[:, None]
        means += delta
        self._means[here] = means
        self._n[here] += more
        self._energy[here] += other._energy[there]
        self._units[here] += other._units[there]

    def _slots_for(self, types: Index) -> Index:
        """Table rows of the given types, after making room for those not yet seen."""
        at = np.searchsorted(self.types, types)
        fresh = types[self.types.take(at, mode="clip") != types] if len(self.types) else types
        if len(fresh):
            used = len(self._slot)
            self._reserve(used + len(fresh))
            at = np.searchsorted(self.types, fresh)
            self.types = np.insert(self.types, at, fresh)
            self._slot = np.insert(self._slot, at, np.arange(used, used + len(fresh)))
            at = np.searchsorted(self.types, types)
        return self._slot[at]

    def _reserve(self, rows: int) -> None:
        """Room for `rows` types; tables double, and pages never touched cost no memory."""
        room = len(self._n)
        if rows <= room:
            return
        for name in _COLUMNS:
            old = getattr(self, f"_{name}")
            new = np.zeros((max(rows, 2 * room), *old.shape[1:]), old.dtype)
            new[:room] = old
            setattr(self, f"_{name}", new)

    def means_of(self, types: Index) -> NDArray[np.float64]:
        """The means of some token types, which must have been seen, (k,) -> (k, d)."""
        return np.asarray(self._means[self._slot[np.searchsorted(self.types, types)]])

    def copy(self) -> TokenStatistics:
        return TokenStatistics.from_arrays(self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        return {"types": self.types.copy()} | {name: getattr(self, f"_{name}")[self._slot] for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TokenStatistics:
        """The state that `arrays` returned; takes the arrays over, and copies those that cannot be written to."""
        types = require_types(arrays, "types")
        k = len(types)
        n = require(arrays, "n", np.int64, (k,), least=1, most=MOST)
        scatters, energy = (
            require(arrays, name, np.float64, (k,), least=0, most=LARGEST_SQUARE) for name in ("scatters", "energy")
        )
        means = require(arrays, "means", np.float64, (k, None), within=LARGEST)
        units = require(arrays, "units", (np.float32, np.float64), means.shape, within=MOST)
        return cls(types, np.arange(k), n, scatters, energy, means, units)


def require_types(arrays: Mapping[str, NDArray[Any]], name: str) -> Index:
    """Token types from a file: each once, ascending, (k,)."""
    types = require(arrays, name, np.int64, (None,))
    require_consistent(bool((types[1:] > types[:-1]).all()), "the saved token types are not in ascending order")
    return types


def _compute_squared_distances(rows: NDArray[np.float64], means: NDArray[np.float64], types: Types) -> Vector:
    """‖x − μ_t‖² of each row x to the mean of its own type, (n,), by differences, so that nothing cancels."""
    which = np.empty(len(rows), np.int64)
    which[types.order] = np.repeat(np.arange(len(types.ids)), np.diff(types.begin))
    distances = np.empty(len(rows))
    for part in slice_rows(len(rows), _ROWS_AT_ONCE):
        distances[part] = compute_squared_lengths(rows[part] - means[which[part]])
    return distances


def _compute_variances(scatters: Vector, energy: Vector, n: Index) -> Vector:
    """V_t, (k,); what is only the rounding of equal rows is zero."""
    return np.asarray(np.where(scatters > _SAME * energy, scatters / n, 0.0))


def _sum_by_type(types: Types, values: Vector) -> Vector:
    """Sum of values, (n,), over the rows of each type, (k,)."""
    return np.asarray(np.add.reduceat(values[types.order], types.begin[:-1]))
