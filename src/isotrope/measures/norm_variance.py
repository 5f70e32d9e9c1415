"""The trade-off between the norm of a type's mean and its variance, and both against frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, Invariance, Measure, Smooth, measure
from isotrope.statistics import TokenStatistics, TokenTable
from isotrope.statistics.token_tables import select_types

_PAPER = "Yamagiwa and Shimodaira 2024 (norm and variance)"
_WINDOW = "over types with 10 to 100,000 occurrences"
_BLIND = (
    "Rare types; with fewer than some hundred types the regression is loose. Its interval is about the types that are "
    "in the window now, not about those that more text would bring."
)

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


def make_signed_root(of: Callable[..., float]) -> Smooth:
    """The interval of an R², which has a corner at zero, by way of the correlation."""

    def back(low: float, high: float) -> Bounds:
        ends = sorted((low**2, high**2))
        return (0.0 if low < 0.0 < high else ends[0], ends[1])

    return Smooth(of, lambda value, near: math.copysign(math.sqrt(value), near), back)


@measure(
    "tokens",
    title="Variation of Q over types",
    says="How much the squared length differs from one token type to another, relative to its average.",
    range=(0.0, float("inf")),
    formula=f"standard deviation of Q_t over its mean, {_WINDOW}",
    paper=f"{_PAPER}, Fig. 4",
    unsure_bias=True,
    blind=_BLIND,
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
    range=(-float("inf"), float("inf")),
    formula=f"least-squares slope of V_t on M_t, {_WINDOW}",
    paper=f"{_PAPER}, Figs. 2 and 4",
    unsure_bias=True,
    blind=_BLIND,
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
    unsure_bias=True,
    smooth=make_signed_root(lambda t: correlation(_trade_off(t))),
    blind=_BLIND,
)
def variance_on_mean_r2(t: TokenStatistics | TokenTable) -> float:
    """R² of the variance of types on the squared norm of their means."""
    return r_squared(_trade_off(t))


def _same(values: Vector) -> Vector:
    return values


def _log(values: Vector) -> Vector:
    return np.log10(1.0 + values)


def _on_frequency(index: int, scale: Callable[[Vector], Vector], part: Callable[[Line], float]) -> Callable[..., float]:
    """Slope or R² of Q, M or V (index 0, 1, 2) on log10 n."""

    def function(t: TokenStatistics | TokenTable) -> float:
        kept = select_types(t, 3)
        return part(regression(np.log10(kept.n), scale((kept.q, kept.m, kept.v)[index])))

    return function


def _family() -> list[Measure]:
    """Slope and R² of Q, M, V, and of their logarithms, on the logarithm of frequency."""
    made = []
    quantities = (("squared_norm", "Q"), ("mean_norm", "M"), ("variance", "V"))
    for index, (name, letter) in enumerate(quantities):
        for prefix, scale, what, figure in (
            ("", _same, f"{letter}_t", "Fig. 7"),
            ("log_", _log, f"log10(1 + {letter}_t)", "Figs. 11 to 13 and 17"),
        ):
            for part, suffix, word in ((slope, "slope", "Slope"), (r_squared, "r2", "R²")):
                steep = part is slope
                scaled: tuple[Invariance, ...] = () if prefix or steep else ("scale",)
                shifted: tuple[Invariance, ...] = ("shift",) if letter == "V" else ()
                record = measure(
                    "tokens",
                    name=f"{prefix}{name}_on_frequency_{suffix}",
                    title=f"{word} of {what} on frequency",
                    says=(
                        f"How {what} of a token type changes with each tenfold of its frequency."
                        if steep
                        else f"How closely {what} of a token type follows its frequency: 1 exactly."
                    ),
                    range=(-float("inf"), float("inf")) if steep else (0.0, 1.0),
                    invariant=("rotation", *scaled, *shifted),
                    degree=2 if steep and not prefix else 0,
                    formula=f"{word} of {what} on log10 n_t, {_WINDOW}",
                    paper=f"{_PAPER}, {figure}",
                    unsure_bias=True,
                    smooth=None if steep else make_signed_root(_on_frequency(index, scale, correlation)),
                    blind=_BLIND,
                )
                made.append(record(_on_frequency(index, scale, part)))
    return made


FREQUENCY_MEASURES = _family()
