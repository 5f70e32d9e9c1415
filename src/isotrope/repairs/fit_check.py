"""Whether rows look like those that a repair was fitted on: their lengths, and where their mean lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_float64, to_matrix, to_unit_rows
from isotrope.statistics import Moments

Vector = NDArray[np.float64]

#: Rows whose lengths all lie within this of 1 have unit length: float16 and bfloat16 round lengths by less.
UNIT = 0.01

#: How far beyond the lengths of the fit the median length of other rows may lie: as the logarithm of a factor, and for
#: each standard deviation of the logarithms of the fit's own lengths.
_BEYOND, _BEYOND_SPREAD = 0.1, 2.0

#: The logarithm of the largest factor: the exponential of a larger one is no number.
_LARGEST_LOG = 700.0

#: How far from the mean of the fit another mean may lie, in root mean square distances of the rows from their mean.
_APART = 2.0

#: Rows that are compared, of those that are given at once.
_LOOKED_AT = 2_000


@dataclass(frozen=True)
class Lengths:
    """Euclidean lengths of rows that are not zero: a value with an empty element `Lengths()` and `+`.

    rows: their number. least, greatest: of all. mean_log, scatter_log: mean of the logarithms of the lengths, and the
    sum of their squared distances from it.

    >>> both = Lengths.of(np.array([1.0])) + Lengths.of(np.array([4.0]))
    >>> (both.rows, both.least, both.greatest, round(math.exp(both.mean_log), 9))
    (2, 1.0, 4.0, 2.0)
    """

    rows: int = 0
    least: float = math.inf
    greatest: float = 0.0
    mean_log: float = 0.0
    scatter_log: float = 0.0

    @classmethod
    def of(cls, lengths: Vector) -> Lengths:
        """Of the lengths of rows, (n,); zeros are left out."""
        there = lengths[lengths > 0]
        if not len(there):
            return cls()
        logs = np.log(there)
        mean = float(logs.mean())
        return cls(len(there), float(there.min()), float(there.max()), mean, float(np.square(logs - mean).sum()))

    @classmethod
    def from_moments(cls, m: Moments) -> Lengths:
        """What moments tell: that all rows have length 1, or nothing."""
        if m.n and abs(m.energy / m.n - 1) < UNIT and np.allclose(m.mean, m.unit_mean, rtol=0, atol=UNIT / 10):
            return cls(m.n, 1.0, 1.0)
        return cls()

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any] | None) -> Lengths:
        """What `to_dict` returned; a TypeError where it is something else."""
        if not facts:
            return cls()
        if any(type(value) not in (int, float) or not math.isfinite(value) for value in facts.values()):
            raise TypeError(f"lengths are {facts!r}")
        found = cls(**facts)
        if found.rows < 1 or not 0 < found.least <= found.greatest or found.scatter_log < 0:
            raise TypeError(f"lengths are {facts!r}")
        return found

    def to_dict(self) -> dict[str, Any] | None:
        """Plain data, None where there are no lengths."""
        return asdict(self) if self.rows else None

    def __add__(self, other: Lengths) -> Lengths:
        if not self.rows or not other.rows:
            return self if self.rows else other
        rows, apart = self.rows + other.rows, other.mean_log - self.mean_log
        return Lengths(
            rows,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
            self.mean_log + apart * other.rows / rows,
            self.scatter_log + other.scatter_log + apart**2 * self.rows * other.rows / rows,
        )

    @property
    def unit(self) -> bool:
        """Whether all rows have length 1, to the precision of half floats."""
        return self.rows > 0 and abs(self.least - 1) < UNIT and abs(self.greatest - 1) < UNIT

    @property
    def allowed(self) -> tuple[float, float]:
        """Where the median length of rows like these lies: from the least to the greatest, and somewhat beyond.

        The more the lengths differ, the further beyond: the next rows may well be longer than any so far.
        """
        spread = math.sqrt(self.scatter_log / max(self.rows, 1))
        factor = math.exp(min(_BEYOND + _BEYOND_SPREAD * spread, _LARGEST_LOG))
        return self.least / factor, self.greatest * factor


@dataclass(frozen=True, eq=False)
class FitCheck:
    """What rows are compared with: the lengths of the rows of a fit, their mean, (d,), and their spread about it.

    spread: root mean square distance of the rows from their mean. of_unit_rows: whether all of these are of rows
    divided by their length, and others are compared so.

    >>> check = FitCheck(Lengths.of(np.array([30.0, 40.0])), np.array([30.0, 0.0]), 10.0)
    >>> check.find_mismatch(np.array([[35.0, 1.0]])) is None
    True
    >>> check.find_mismatch(np.array([[1.0, 0.0]]))
    'their median length is 1, while the rows of the fit have lengths from 30 to 40'
    """

    lengths: Lengths
    mean: Vector
    spread: float
    of_unit_rows: bool = False

    def find_mismatch(self, rows: Any) -> str | None:
        """How rows, (n, d), differ from those of the fit, None where they do not; rows of zeros are passed over."""
        compared = to_matrix(rows)[:: -(-len(rows) // _LOOKED_AT) or 1]
        values = to_float64(to_unit_rows(compared) if self.of_unit_rows else compared)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
        usable = (lengths > 0) & np.isfinite(lengths)
        if not self.lengths.rows or not usable.any():
            return None
        low, high = self.lengths.allowed
        median = float(np.median(lengths[usable]))
        if not low <= median <= high:
            known = f"{self.lengths.least:.4g} to {self.lengths.greatest:.4g}"
            of = "length 1" if self.lengths.unit else f"lengths from {known}"
            return f"their median length is {median:.4g}, while the rows of the fit have {of}"
        apart = float(np.linalg.norm(values[usable].mean(axis=0) - self.mean))
        if apart > self._compute_allowed_distance(int(usable.sum())):
            return (
                f"their mean lies {apart / self.spread:.2g} standard deviations from the mean of the rows of the fit, "
                f"expected at most {_APART:g}"
            )
        return None

    def _compute_allowed_distance(self, rows: int) -> float:
        """How far the mean of so many rows may lie from that of the fit.

        Beside the bound for many rows, one extreme row is allowed, as far away as any row of the fit can have been: a
        single row is then never refused for where it lies, only for its length.
        """
        reach = self.lengths.allowed[1] + float(np.linalg.norm(self.mean))
        return _APART * self.spread + reach / rows
