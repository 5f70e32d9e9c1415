"""Which token types the regressions over types use, and the regression itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, Smooth
from isotrope.statistics import TokenStatistics, TokenTable, TokenTables
from isotrope.statistics.token_tables import FEWEST, MOST, frequent

__all__ = ["FEWEST", "MOST", "Line", "Types", "correlation", "enough", "in_window", "r_squared", "regression"]
__all__ += ["signed_root", "slope", "table"]


def table(t: TokenStatistics | TokenTables | TokenTable) -> TokenTable:
    """The table over token types; undefined without tokens."""
    found = t if isinstance(t, TokenTable) else t.table
    if len(found.n) == 0:
        raise Undefined("there are no tokens")
    return found


def in_window(t: TokenStatistics | TokenTables) -> TokenTable:
    """The table of the types in the window, as if there were no others."""
    return table(t.window if isinstance(t, TokenTables) else t.table_of(frequent(t.n)))


#: Values that differ by less than this share of their size differ by rounding alone.
_SAME = 1e-12


class Types(NamedTuple):
    """n_t, Q_t, M_t, V_t and ‖Σu‖² of the types in the window, (k,) each."""

    n: NDArray[np.int64]
    q: NDArray[np.float64]
    m: NDArray[np.float64]
    v: NDArray[np.float64]
    unit_squares: NDArray[np.float64]


def enough(t: TokenStatistics | TokenTables | TokenTable, at_least: int) -> Types:
    """The types frequent enough to have a mean and a variance worth the name; undefined if they are too few."""
    all_types = table(t)
    keep = frequent(all_types.seen)
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
