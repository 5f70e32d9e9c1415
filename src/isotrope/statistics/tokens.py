"""Count, mean, variance and mean direction of the rows of each token type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.errors import InputError, MergeError
from isotrope.statistics.block import Block

Vector = NDArray[np.float64]

#: Token types handled at a time where means are needed, so that temporaries stay small.
_TYPES_AT_ONCE = 4096


class TokenTable(NamedTuple):
    """Per token type t, (k,) each: n_t, Q_t = E‖x‖², M_t = ‖μ_t‖², V_t = E‖x − μ_t‖², B_t = ‖μ_t − μ‖², ‖Σu‖².

    mean_square: ‖μ‖² of all rows. unit_square: ‖Σu‖² of all rows.
    """

    types: NDArray[np.int64]
    n: NDArray[np.int64]
    q: Vector
    m: Vector
    v: Vector
    b: Vector
    unit_squares: Vector
    mean_square: float
    unit_square: float


@dataclass(eq=False)
class TokenStatistics:
    """Sums over the occurrences of each token type t, in float64 about one shift for all types.

    A value with an empty element `TokenStatistics.empty(d)` and `+`; `+=` reuses memory. Memory grows with the
    number of types seen, not with the corpus (Yamagiwa and Shimodaira 2024, Algorithm 1, without its
    cancellation: sums are taken about a shift close to all rows).

    types: (k,) int64, ascending. n: (k,). sums: (k, d), Σ(x − shift). squares: (k,), Σ‖x − shift‖².
    energy: (k,), Σ‖x‖². units: (k, d), Σx/‖x‖, in the rows' own type.
    """

    shift: Vector
    types: NDArray[np.int64]
    _slot: NDArray[np.int64]
    _n: NDArray[np.int64]
    _squares: Vector
    _energy: Vector
    _sums: NDArray[np.float64]
    _units: NDArray[np.floating[Any]]

    @classmethod
    def empty(cls, d: int) -> TokenStatistics:
        none = np.empty(0, np.int64)
        table = np.empty((0, d))
        return cls(np.zeros(d), none, none, none, np.empty(0), np.empty(0), table, table.astype(np.float32))

    @classmethod
    def of(cls, rows: Block) -> TokenStatistics:
        """The statistics of one block, by two sparse products (types × rows) with the rows."""
        if rows.rows.token is None:
            raise InputError("these rows have no token types; token statistics need rows from a text model.")
        n, d = rows.values.shape
        if n == 0:
            return cls.empty(d)
        types, which = np.unique(rows.rows.token, return_inverse=True)
        k = len(types)
        count = np.bincount(which, minlength=k)
        pick = (which, np.arange(n))
        ones = sparse.csr_array((np.ones(n), pick), shape=(k, n))
        inverse = (1.0 / rows.norms).astype(rows.values.dtype)
        return cls(
            shift=rows.shift,
            types=types,
            _slot=np.arange(k),
            _n=count,
            _squares=np.bincount(which, np.einsum("ij,ij->i", rows.offsets, rows.offsets), minlength=k),
            _energy=np.bincount(which, rows.norms**2, minlength=k),
            _sums=ones @ rows.offsets,
            _units=sparse.csr_array((inverse, pick), shape=(k, n)) @ rows.values,
        )

    def __len__(self) -> int:
        """How many token types were seen."""
        return len(self.types)

    @property
    def d(self) -> int:
        return len(self.shift)

    @property
    def n(self) -> NDArray[np.int64]:
        return self._n[self._slot]

    @cached_property
    def table(self) -> TokenTable:
        """What the measures over token types need, one row per type."""
        n, k = self.n, len(self)
        m, v, b, unit = np.empty((4, k))
        total = self._total() / max(int(n.sum()), 1)
        units = np.zeros(self.d)
        for start in range(0, k, _TYPES_AT_ONCE):
            part = slice(start, start + _TYPES_AT_ONCE)
            slot = self._slot[part]
            offset = self._sums[slot] / n[part, None]
            v[part] = np.maximum(self._squares[slot] / n[part] - _squared(offset), 0.0)
            b[part] = _squared(offset - total)
            m[part] = _squared(offset + self.shift)
            wide = self._units[slot].astype(np.float64)
            units += wide.sum(axis=0)
            unit[part] = _squared(wide)
        mean = self.shift + total
        return TokenTable(
            types=self.types,
            n=n,
            q=self._energy[self._slot] / np.maximum(n, 1),
            m=m,
            v=v,
            b=b,
            unit_squares=unit,
            mean_square=float(mean @ mean),
            unit_square=float(units @ units),
        )

    def _total(self) -> Vector:
        """Σ over all types of Σ(x − shift), (d,)."""
        total = np.zeros(self.d)
        for start in range(0, len(self), _TYPES_AT_ONCE):
            total += self._sums[self._slot[start : start + _TYPES_AT_ONCE]].sum(axis=0)
        return total

    def table_without(self, part: TokenStatistics) -> TokenTable:
        """The table of these rows less those of `part`, which are among them, by changing only its types."""
        whole = self.table
        at = np.searchsorted(self.types, part.types)
        slot, there = self._slot[at], part._slot
        delta = part.shift - self.shift
        gone = part._n[there]
        their_sums = part._sums[there]
        squares = part._squares[there] + 2.0 * (their_sums @ delta) + gone * float(delta @ delta)
        their_sums = their_sums + gone[:, None] * delta
        left = np.maximum(self._n[slot] - gone, 1)  # types that vanish are dropped below
        offset = (self._sums[slot] - their_sums) / left[:, None]
        units = (self._units[slot] - part._units[there]).astype(np.float64)
        n, q, m, v, b, unit = (np.array(c) for c in whole[1:7])
        n[at] -= gone
        q[at] = (self._energy[slot] - part._energy[there]) / left
        m[at] = _squared(offset + self.shift)
        v[at] = np.maximum((self._squares[slot] - squares) / left - _squared(offset), 0.0)
        unit[at] = _squared(units)
        total = (self._total_sum - their_sums.sum(axis=0)) / max(int(n.sum()), 1)
        # ‖o − t‖² for all types with one product: o are offsets from the shift, so little cancels.
        lengths = self._offset_squares.copy()
        lengths[at] = _squared(offset)
        along = (self._sums @ total)[self._slot] / whole.n
        along[at] = offset @ total
        b = np.maximum(lengths - 2.0 * along + float(total @ total), 0.0)
        mean = self.shift + total
        everything = self._unit_sum - part._units[there].sum(axis=0, dtype=np.float64)
        keep = n > 0
        columns = [column[keep] for column in (self.types, n, q, m, v, b, unit)]
        return TokenTable(*columns, float(mean @ mean), float(everything @ everything))

    @cached_property
    def _total_sum(self) -> Vector:
        return self._total()

    @cached_property
    def _unit_sum(self) -> Vector:
        return np.asarray(self._units[self._slot].sum(axis=0, dtype=np.float64))

    @cached_property
    def _offset_squares(self) -> Vector:
        return _squared(self._sums[self._slot] / self.n[:, None])

    def select(self, keep: NDArray[np.bool_]) -> TokenStatistics:
        """Only the types marked in a mask of shape (k,)."""
        return replace(self, types=self.types[keep], _slot=self._slot[keep])

    def __add__(self, other: TokenStatistics) -> TokenStatistics:
        result = self.copy()
        result += other
        return result

    def __iadd__(self, other: TokenStatistics) -> TokenStatistics:
        self._merge(other)
        return self

    def _merge(self, other: TokenStatistics) -> None:
        if other.d != self.d:
            raise MergeError(f"cannot merge token rows of width {other.d} with rows of width {self.d}.")
        if len(other) == 0:
            return
        for name in ("table", "_total_sum", "_unit_sum", "_offset_squares"):
            self.__dict__.pop(name, None)
        if len(self) == 0:
            self.shift = other.shift.copy()
        if other._units.dtype.itemsize > self._units.dtype.itemsize:
            self._units = self._units.astype(other._units.dtype)
        here = self._slots_for(other.types)
        there = other._slot
        delta = other.shift - self.shift
        n = other._n[there]
        sums = other._sums[there]
        self._squares[here] += other._squares[there] + 2.0 * (sums @ delta) + n * float(delta @ delta)
        sums += n[:, None] * delta
        self._sums[here] += sums
        self._n[here] += n
        self._energy[here] += other._energy[there]
        self._units[here] += other._units[there]

    def _slots_for(self, types: NDArray[np.int64]) -> NDArray[np.int64]:
        """Table rows of the given types, after making room for those not yet seen."""
        fresh = np.setdiff1d(types, self.types, assume_unique=True)
        if len(fresh):
            used = len(self._slot)
            self._reserve(used + len(fresh))
            at = np.searchsorted(self.types, fresh)
            self.types = np.insert(self.types, at, fresh)
            self._slot = np.insert(self._slot, at, np.arange(used, used + len(fresh)))
        return self._slot[np.searchsorted(self.types, types)]

    def _reserve(self, rows: int) -> None:
        """Room for `rows` types; tables double, and pages never touched cost no memory."""
        room = len(self._n)
        if rows <= room:
            return
        for name in ("_n", "_squares", "_energy", "_sums", "_units"):
            old = getattr(self, name)
            new = np.zeros((max(rows, 2 * room), *old.shape[1:]), old.dtype)
            new[:room] = old
            setattr(self, name, new)

    def copy(self) -> TokenStatistics:
        return TokenStatistics.from_arrays(self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        slot = self._slot
        return {
            "shift": self.shift.copy(),
            "types": self.types.copy(),
            "n": self._n[slot],
            "squares": self._squares[slot],
            "energy": self._energy[slot],
            "sums": self._sums[slot],
            "units": self._units[slot],
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TokenStatistics:
        """The state that `arrays` returned."""
        columns = [arrays[name] for name in ("n", "squares", "energy", "sums", "units")]
        return cls(arrays["shift"], arrays["types"], np.arange(len(arrays["types"])), *columns)


def _squared(rows: NDArray[np.float64]) -> Vector:
    """Squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
