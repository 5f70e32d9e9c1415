"""Which token types the regressions over types use, and the regression itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.statistics import TokenStatistics, TokenTable

#: Types with fewer or more occurrences are left out, both ends in (Yamagiwa and Shimodaira 2024: 1 ≤ log10 n ≤ 5).
FEWEST, MOST = 10, 100_000


def table(t: TokenStatistics | TokenTable) -> TokenTable:
    """The table over token types; undefined without tokens."""
    found = t if isinstance(t, TokenTable) else t.table
    if len(found.n) == 0:
        raise Undefined("there are no tokens")
    return found


def in_window(t: TokenStatistics) -> TokenStatistics:
    """The statistics of the types in the window alone."""
    return t.select((t.n >= FEWEST) & (t.n <= MOST))


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
    keep = (all_types.n >= FEWEST) & (all_types.n <= MOST)
    if (found := int(keep.sum())) < at_least:
        raise Undefined(f"needs at least {at_least} token types with {FEWEST} to {MOST:,} occurrences, found {found}")
    return Types(*(getattr(all_types, name)[keep] for name in Types._fields))


def regression(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Least-squares slope of y on x and its R², both (k,)."""
    dx, dy = x - x.mean(), y - y.mean()
    sxx, syy, sxy = float(dx @ dx), float(dy @ dy), float(dx @ dy)
    if not sxx > 0:
        raise Undefined("all types have the same value on the horizontal axis, so there is no slope")
    return sxy / sxx, (sxy * sxy / (sxx * syy) if syy > 0 else 1.0)
