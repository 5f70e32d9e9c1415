"""Which token types the regressions over types use, and the regression itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.measure import Bounds, Smooth
from isotrope.statistics import TokenStatistics, TokenTable

#: Types with fewer or more occurrences are left out, both ends in (Yamagiwa and Shimodaira 2024: 1 ≤ log10 n ≤ 5).
FEWEST, MOST = 10, 100_000


def table(t: TokenStatistics | TokenTable) -> TokenTable:
    """The table over token types; undefined without tokens."""
    found = t if isinstance(t, TokenTable) else t.table
    if len(found.n) == 0:
        raise Undefined("there are no tokens")
    return found


def in_window(t: TokenStatistics) -> TokenTable:
    """The table of the types in the window, as if there were no others."""
    return table(t.table_of(_frequent(t.n)))


def _frequent(n: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (n >= FEWEST) & (n <= MOST)


#: Values that differ by less than this share of their size differ by rounding alone.
_SAME = 1e-12


class Types(NamedTuple):
    """n_t, Q_t, M_t, V_t and ‖Σu‖² of the types in the window, (k,) each."""

    n: NDArray[np.int64]
    q: NDArray[np.float64]
    m: NDArray[np.float64]
    v: NDArray[np.float64]
    unit_squares: NDArray[np.float64]


def enough(t: TokenStatistics | TokenTable, at_least: int) -> Types:
    """The types frequent enough to have a mean and a variance worth the name; undefined if they are too few."""
    all_types = table(t)
    keep = _frequent(all_types.seen)
    if (found := int(keep.sum())) < at_least:
        raise Undefined(f"needs at least {at_least} token types with {FEWEST} to {MOST:,} occurrences, found {found}")
    return Types(*(getattr(all_types, name)[keep] for name in Types._fields))


class Line(NamedTuple):
    """A least-squares line: its slope, and the correlation of its points, NaN where all are equally high."""

    slope: float
    correlation: float


def regression(x: NDArray[np.float64], y: NDArray[np.float64]) -> Line:
    """The least-squares line of y on x, both (k,)."""
    dx, dy = x - x.mean(), y - y.mean()
    sxx, syy, sxy = float(dx @ dx), float(dy @ dy), float(dx @ dy)
    if not sxx > _SAME**2 * float(x @ x):
        raise Undefined("all types have the same value on the horizontal axis, so there is no slope")
    level = not syy > _SAME**2 * float(y @ y)
    return Line(sxy / sxx, math.nan if level else float(np.clip(sxy / math.sqrt(sxx) / math.sqrt(syy), -1.0, 1.0)))


def slope(line: Line) -> float:
    """Slope of a line."""
    return line.slope


def correlation(line: Line) -> float:
    """Signed root of R²; undefined where all points are equally high."""
    if math.isnan(line.correlation):
        raise Undefined("all types have the same value on the vertical axis, so R² is undefined")
    return line.correlation


def r_squared(line: Line) -> float:
    """R² of a line; undefined where all points are equally high."""
    return correlation(line) ** 2


def signed_root(of: Callable[..., float]) -> Smooth:
    """The interval of an R², which has a corner at zero, by way of the correlation."""

    def back(low: float, high: float) -> Bounds:
        ends = sorted((low**2, high**2))
        return (0.0 if low < 0.0 < high else ends[0], ends[1])

    return Smooth(of, lambda value, near: math.copysign(math.sqrt(value), near), back)
