"""First and second moments of rows, accumulated centred, and the spectra that follow from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import is_tensor
from isotrope.compute.threads import slice_rows
from isotrope.errors import MergeError
from isotrope.statistics.norm_moments import NO_NORMS, UNKNOWN, NormMoments
from isotrope.statistics.saved_arrays import LARGEST, LARGEST_SQUARE, MOST, require, require_consistent, require_counts
from isotrope.statistics.tridiagonal import spectra
from isotrope.statistics.usable_rows import UsableRows, compute_unit_moments

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EXACT = float(np.finfo(np.float64).eps)

#: Rows whose spread is below this share of their length differ by rounding alone.
_SAME = 1e-12

#: Columns per block of the Gram matrix: only blocks on and above the diagonal are multiplied.
_PANEL = 128

#: Rows multiplied at once, so that rounding errors, which are summed up in the rows' own type, stay bounded.
_ROWS = 2048


def gram(y: Any) -> Matrix:
    """yᵀy as float64, multiplied in the type and on the device of y, shape (n, d) -> (d, d)."""
    if len(y) > _ROWS:
        return reduce(operator.iadd, (gram(y[part]) for part in slice_rows(len(y), _ROWS)))
    if not is_tensor(y):
        return np.asarray(y.T @ y, dtype=np.float64)  # numpy sees the symmetry and halves the work
    d = y.shape[1]
    out = y.new_empty((d, d))
    for i in range(0, d, _PANEL):
        panel = y[:, i : i + _PANEL].T @ y[:, i:]
        out[i : i + _PANEL, i:] = panel
        out[i:, i : i + _PANEL] = panel.T
    return np.asarray(out.cpu().numpy(), dtype=np.float64)


def _add_outer(matrix: Matrix, weight: float, x: Vector) -> None:
    """Add weight · x xᵀ to a symmetric matrix, in place, a few rows at a time, which stay in the cache.

    Not by BLAS: scipy brings one of its own, whose waiting threads would take the cores from numpy's products.
    """
    root = math.sqrt(abs(weight)) * x
    signed = math.copysign(1.0, weight) * root
    for part in slice_rows(len(x), _PANEL):
        matrix[part] += signed[part, None] * root


@dataclass(eq=False)
class Moments:
    """Count, mean and centred scatter of rows, and of their directions.

    A value with an empty element `Moments.empty(d)` and `+`; `+=` reuses memory. Means and scatter are merged
    centred, so a common mean far larger than the spread costs no digits.

    Attributes:
        n: Number of rows.
        mean: (d,), the mean.
        scatter: (d, d), Σ(x − mean)(x − mean)ᵀ.
        unit_mean: (d,), mean of u = x/‖x‖.
        unit_scatter: Σ‖u − unit_mean‖².
        energy: Σ‖x‖².
        norms: Mean and scatter of ‖x‖; NaN in what earlier versions saved.
        zero: Number of zero rows, which are left out.
        nonfinite: Number of rows with NaN or infinity, which are left out.
        resolution: Machine epsilon of the coarsest product taken (float32 in fast precision).

    References:
        Chan, Golub and LeVeque 1983
    """

    n: int
    mean: Vector
    scatter: Matrix
    unit_mean: Vector
    unit_scatter: float = 0.0
    energy: float = 0.0
    zero: int = 0
    nonfinite: int = 0
    resolution: float = _EXACT
    norms: NormMoments = UNKNOWN

    @classmethod
    def empty(cls, d: int) -> Moments:
        return cls(0, np.zeros(d), np.zeros((d, d)), np.zeros(d), norms=NO_NORMS)

    @classmethod
    def of(cls, rows: UsableRows, product: Matrix | None = None) -> Moments:
        """The moments of some rows; product: `gram(rows.centred)`, where another thread has computed it."""
        n, d = rows.values.shape
        if n == 0:
            empty = cls.empty(d)
            empty.zero, empty.nonfinite = rows.zero, rows.nonfinite
            return empty
        scatter = gram(rows.centred) if product is None else product
        resolution = float(np.finfo(rows.values.dtype).eps)
        # What rounding the shift left over, taken out in float64, unless the product's own rounding hides it.
        rest = rows.mean - rows.shift
        if (n * rest**2 > 1e-3 * resolution * np.diagonal(scatter)).any():
            _add_outer(scatter, -n, rest)
        unit_mean, unit_scatter = compute_unit_moments(rows)
        return cls(
            n=n,
            mean=rows.mean,
            scatter=scatter,
            unit_mean=unit_mean,
            unit_scatter=unit_scatter,
            energy=float(rows.norms @ rows.norms),
            zero=rows.zero,
            nonfinite=rows.nonfinite,
            resolution=resolution,
            norms=NormMoments.of(rows.norms),
        )

    @property
    def d(self) -> int:
        return len(self.mean)

    def check(self, other: Moments) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge rows of width {other.d} with rows of width {self.d}.")

    def __iadd__(self, other: Moments) -> Moments:
        self._merge(other, sign=1)
        return self

    def __add__(self, other: Moments) -> Moments:
        result = self.copy()
        result += other
        return result

    def without(self, part: Moments) -> Moments:
        """These moments with the rows of `part`, which are among them, taken out."""
        result = self.copy()
        result._merge(part, sign=-1)
        return result

    def copy(self) -> Moments:
        return replace(self, mean=self.mean.copy(), scatter=self.scatter.copy(), unit_mean=self.unit_mean.copy())

    def _merge(self, other: Moments, sign: int) -> None:
        self.check(other)
        for name in ("eigenvalues", "singular_values", "_spectra", "_rounding"):
            self.__dict__.pop(name, None)
        n = self.n + sign * other.n
        self.zero += sign * other.zero
        self.nonfinite += sign * other.nonfinite
        self.resolution = max(self.resolution, other.resolution)
        if other.n == 0:
            return
        if n == 0:
            self.n, self.energy, self.unit_scatter, self.norms = 0, 0.0, 0.0, NO_NORMS
            for array in (self.mean, self.scatter, self.unit_mean):
                array[...] = 0.0
            return
        share = sign * other.n / n
        between = sign * self.n * other.n / n
        delta = other.mean - self.mean
        self.scatter += other.scatter if sign > 0 else -other.scatter
        if between:
            _add_outer(self.scatter, between, delta)
        self.mean += share * delta
        unit_delta = other.unit_mean - self.unit_mean
        self.unit_scatter = max(
            0.0, self.unit_scatter + sign * other.unit_scatter + between * float(unit_delta @ unit_delta)
        )
        self.unit_mean += share * unit_delta
        self.energy += sign * other.energy
        self.norms = self.norms.merge(other.norms, self.n, sign * other.n)
        self.n = n

    @property
    def constant(self) -> bool:
        """Whether the rows are all the same, as far as rounding can tell."""
        return self.n < 2 or not float(self.scatter.trace()) > _SAME**2 * self.energy

    @cached_property
    def eigenvalues(self) -> Vector:
        """Eigenvalues of the scatter matrix, descending, (d,); divide by n − 1 for the covariance's."""
        return _drop_rounding(self._spectra[0], self._rounding)

    @cached_property
    def singular_values(self) -> Vector:
        """Singular values of the uncentred rows, descending, (min(n, d),)."""
        # Only the centred products were rounded to the rows' own type, so a large mean hides nothing.
        values = np.sqrt(_drop_rounding(self._spectra[1], self._rounding)[: min(self.n, self.d)])
        return values if values[-1:].all() or self.resolution > _EXACT else self._fine_singular_values[: len(values)]

    @cached_property
    def _spectra(self) -> Matrix:
        """Eigenvalues of the centred and of the uncentred sums of products, descending, (2, d)."""
        return spectra(self.scatter, self.n, self.mean)

    @property
    def _fine_singular_values(self) -> Vector:
        """Singular values by way of a factor, which keeps twice the digits of squares, (d,).

        A layer norm leaves a direction in which rows do not spread and their mean is tiny: its square is lost.
        """
        values, vectors = np.linalg.eigh(self.scatter)
        root = np.sqrt(np.where(values > values[-1] * 32 * _EXACT, values, 0.0))
        factor = np.vstack([root[:, None] * vectors.T, math.sqrt(self.n) * self.mean])
        found = np.linalg.svd(factor, compute_uv=False)
        return np.where(found > found[0] * 32 * _EXACT, found, 0.0)

    @cached_property
    def _rounding(self) -> Vector:
        """How much rounding in products of the rows' own type may add to each eigenvalue, descending, (d,).

        An error in the product of two coordinates is as large as those coordinates, no larger: a few massive
        coordinates blur only themselves. So it is the correlations that are blurred alike, by 2/√d to 9/√d of the
        resolution times their norm (measured for d = 8 to 768, n to 50,000, spectra flat to rank one), and the i-th
        largest eigenvalue by that share of the i-th largest diagonal entry. Errors of several products are random and
        average out.
        """
        strength = np.maximum(np.diagonal(self.scatter), 0.0)
        scale = np.sqrt(np.maximum(strength, np.finfo(np.float64).tiny))
        # The square of a tiny coordinate may vanish where its product with others does not: no correlation is above 1.
        norm = float(np.linalg.norm(np.clip(self.scatter / scale / scale[:, None], -1.0, 1.0)))
        shrunk = math.sqrt(min(1.0, _ROWS / max(self.n, 1)))
        return 16.0 / math.sqrt(self.d) * self.resolution * shrunk * norm * np.sort(strength)[::-1]

    @property
    def unresolved(self) -> int:
        """How many singular values are too small for the precision used and were set to zero."""
        return int((self.singular_values == 0).sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        numbers = [self.unit_scatter, self.energy, self.resolution]
        return {
            "counts": np.array([self.n, self.zero, self.nonfinite], dtype=np.int64),
            "numbers": np.array(numbers, dtype=np.float64),
            "norms": np.array(self.norms, dtype=np.float64),
            "mean": self.mean.copy(),
            "scatter": self.scatter.copy(),
            "unit_mean": self.unit_mean.copy(),
        }

    def compact_arrays(self) -> dict[str, NDArray[Any]]:
        """The same with only the upper triangle of the scatter matrix, row by row: half the size, no digit less."""
        arrays = self.arrays()
        scatter = arrays.pop("scatter")
        return arrays | {"upper": np.concatenate([row[i:] for i, row in enumerate(scatter)])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Moments:
        """The state that `arrays` or `compact_arrays` returned; takes over arrays that can be written to."""
        n, zero, nonfinite = require_counts(arrays, "counts", 3).tolist()
        # Moments through a map do not know lengths: their unit rows are NaN.
        unit_scatter, energy, resolution = require(arrays, "numbers", np.float64, (3,), finite=False).tolist()
        mean = require(arrays, "mean", np.float64, (None,), within=LARGEST)
        require_consistent(len(mean) > 0, "the saved mean has no columns")
        lengths_known = not math.isnan(unit_scatter)
        unit_mean = require(
            arrays, "unit_mean", np.float64, mean.shape, within=2.0 if lengths_known else None, finite=lengths_known
        )
        scatter = (
            _square(arrays, len(mean))
            if "upper" in arrays
            else require(arrays, "scatter", np.float64, 2 * mean.shape, within=LARGEST_SQUARE)
        )
        require_consistent(
            (not lengths_known or 0 <= unit_scatter <= MOST) and 0 <= energy <= LARGEST_SQUARE and 0 < resolution < 1,
            f"the saved numbers of moments are {unit_scatter:g}, {energy:g} and {resolution:g}",
        )
        norms = NormMoments.from_arrays(arrays)
        return cls(n, mean, scatter, unit_mean, unit_scatter, energy, zero, nonfinite, resolution, norms)


def _square(arrays: Mapping[str, NDArray[Any]], d: int) -> Matrix:
    """The symmetric matrix, (d, d), from its saved upper triangle."""
    upper = require(arrays, "upper", np.float64, (d * (d + 1) // 2,), within=LARGEST_SQUARE)
    matrix, begin = np.empty((d, d)), 0
    for i in range(d):
        matrix[i, i:] = matrix[i:, i] = upper[begin : begin + d - i]
        begin += d - i
    return matrix


def _drop_rounding(values: Vector, rounding: Vector) -> Vector:
    """Descending eigenvalues; what rounding, of the products and in float64, cannot tell from zero is zero."""
    return np.where(values > rounding + max(values[0], 0.0) * 32 * _EXACT, values, 0.0)
