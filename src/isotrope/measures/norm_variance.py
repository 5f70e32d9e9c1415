"""The trade-off between the norm of a type's mean and its variance, and both against frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, Invariance, Smooth, measure
from isotrope.statistics import TokenStatistics, TokenTable
from isotrope.statistics.token_tables import select_types

_PAPER = "Yamagiwa and Shimodaira 2024 (norm and variance)"
_WINDOW = "over types with 10 to 100,000 occurrences"
_SHARED: dict[str, Any] = {
    "unsure_bias": True,
    "blind": (
        "Rare types; with fewer than some hundred types the regression is loose. Its interval is about the types that "
        "are in the window now, not about those that more text would bring."
    ),
}

Vector = NDArray[np.float64]

#: Values that differ by less than this share of their size differ by rounding alone.
_SAME = 1e-12


class Line(NamedTuple):
    """A least-squares line: its slope, and the correlation of its points, NaN where all are equally high."""

    slope: float
    correlation: float


def regression(x: Vector, y: Vector) -> Line:
    """The least-squares line of y on x, both (k,)."""
    dx, dy = x - x.mean(), y - y.mean()
    sxx, syy, sxy = float(dx @ dx), float(dy @ dy), float(dx @ dy)
    if not sxx > _SAME**2 * float(x @ x):
        raise Undefined("all types have the same value on the horizontal axis, so there is no slope")
    level = not syy > _SAME**2 * float(y @ y)
    return Line(sxy / sxx, math.nan if level else float(np.clip(sxy / math.sqrt(sxx) / math.sqrt(syy), -1.0, 1.0)))


def correlation(line: Line) -> float:
    """Signed root of R²; undefined where all points are equally high."""
    if math.isnan(line.correlation):
        raise Undefined("all types have the same value on the vertical axis, so R² is undefined")
    return line.correlation


def r_squared(line: Line) -> float:
    """R² of a line; undefined where all points are equally high."""
    return correlation(line) ** 2


def make_signed_root(of: Callable[..., float]) -> Smooth:
    """Make the interval of an R², which has a corner at zero, by way of the correlation."""

    def back(low: float, high: float) -> Bounds:
        ends = sorted((low**2, high**2))
        return (0.0 if low < 0.0 < high else ends[0], ends[1])

    return Smooth(of, lambda value, near: math.copysign(math.sqrt(value), near), back)


@measure(
    "tokens",
    title="Variation of Q over types",
    says="How much the squared length differs from one token type to another, relative to its average.",
    range=(0.0, math.inf),
    formula=f"standard deviation of Q_t over its mean, {_WINDOW}",
    paper=f"{_PAPER}, Fig. 4",
    **_SHARED,
)
def squared_norm_variation(t: TokenStatistics | TokenTable) -> float:
    """Coefficient of variation (ddof 0) of the mean squared norm over token types."""
    q = select_types(t, 2).q
    return float(q.std() / q.mean())


def _trade_off(t: TokenStatistics | TokenTable) -> Line:
    types = select_types(t, 3)
    return regression(types.m, types.v)


@measure(
    "tokens",
    title="Slope of V on M",
    says="How much variance a token type loses for each unit of its mean's squared norm: −1 is a full trade-off.",
    range=(-math.inf, math.inf),
    formula=f"least-squares slope of V_t on M_t, {_WINDOW}",
    paper=f"{_PAPER}, Figs. 2 and 4",
    **_SHARED,
)
def variance_on_mean_slope(t: TokenStatistics | TokenTable) -> float:
    """Slope of the variance of types on the squared norm of their means."""
    return _trade_off(t).slope


@measure(
    "tokens",
    title="R² of V on M",
    says="How closely variance follows the mean's squared norm over token types: 1 exactly on a line.",
    range=(0.0, 1.0),
    formula=f"R² of V_t on M_t, {_WINDOW}",
    paper=f"{_PAPER}, Figs. 2 and 4",
    smooth=make_signed_root(lambda t: correlation(_trade_off(t))),
    **_SHARED,
)
def variance_on_mean_r2(t: TokenStatistics | TokenTable) -> float:
    """R² of the variance of types on the squared norm of their means."""
    return r_squared(_trade_off(t))


def _add_on_frequency(name: str, letter: str, *, log: bool) -> None:
    """Register slope and R² of Q, M or V, or of its logarithm, on the logarithm of frequency."""
    what = f"log10(1 + {letter}_t)" if log else f"{letter}_t"
    stem = f"{'log_' if log else ''}{name}_on_frequency"
    paper = f"{_PAPER}, {'Figs. 11 to 13 and 17' if log else 'Fig. 7'}"
    scaled: tuple[Invariance, ...] = () if log else ("scale",)
    shifted: tuple[Invariance, ...] = ("shift",) if letter == "V" else ()

    def line(t: TokenStatistics | TokenTable) -> Line:
        types = select_types(t, 3)
        values = getattr(types, letter.lower())
        return regression(np.log10(types.n), np.log10(1.0 + values) if log else values)

    measure(
        "tokens",
        name=f"{stem}_slope",
        title=f"Slope of {what} on frequency",
        says=f"How {what} of a token type changes with each tenfold of its frequency.",
        range=(-math.inf, math.inf),
        invariant=("rotation", *shifted),
        degree=0 if log else 2,
        formula=f"Slope of {what} on log10 n_t, {_WINDOW}",
        paper=paper,
        **_SHARED,
    )(lambda t: line(t).slope)
    measure(
        "tokens",
        name=f"{stem}_r2",
        title=f"R² of {what} on frequency",
        says=f"How closely {what} of a token type follows its frequency: 1 exactly.",
        range=(0.0, 1.0),
        invariant=("rotation", *scaled, *shifted),
        formula=f"R² of {what} on log10 n_t, {_WINDOW}",
        paper=paper,
        smooth=make_signed_root(lambda t: correlation(line(t))),
        **_SHARED,
    )(lambda t: r_squared(line(t)))


for _name, _letter in (("squared_norm", "Q"), ("mean_norm", "M"), ("variance", "V")):
    _add_on_frequency(_name, _letter, log=False)
    _add_on_frequency(_name, _letter, log=True)
