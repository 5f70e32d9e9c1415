"""The trade-off between the norm of a type's mean and its variance, and both against frequency."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from isotrope.measures.record import Invariance, Measure, measure
from isotrope.measures.token_window import Line, correlation, enough, r_squared, regression, signed_root, slope
from isotrope.statistics import TokenStatistics, TokenTable

_PAPER = "Yamagiwa and Shimodaira 2024 (norm and variance)"
_WINDOW = "over types with 10 to 100,000 occurrences"
_BLIND = (
    "Rare types; with fewer than some hundred types the regression is loose. Its interval is about the types that are "
    "in the window now, not about those that more text would bring."
)

Vector = NDArray[np.float64]


@measure(
    "tokens",
    title="Variation of Q over types",
    says="How much the squared length differs from one token type to another, relative to its average.",
    range=(0.0, float("inf")),
    better=None,
    invariant=("rotation", "scale"),
    formula=f"standard deviation of Q_t over its mean, {_WINDOW}",
    paper=f"{_PAPER}, Fig. 4",
    unsure_bias=True,
    blind=_BLIND,
)
def squared_norm_variation(t: TokenStatistics | TokenTable) -> float:
    """Coefficient of variation (ddof 0) of the mean squared norm over token types."""
    q = enough(t, 2).q
    return float(q.std() / q.mean())


def _trade_off(t: TokenStatistics | TokenTable) -> Line:
    types = enough(t, 3)
    return regression(types.m, types.v)


@measure(
    "tokens",
    title="Slope of V on M",
    says="How much variance a token type loses for each unit of its mean's squared norm: −1 is a full trade-off.",
    range=(-float("inf"), float("inf")),
    better=None,
    invariant=("rotation", "scale"),
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
    better=None,
    invariant=("rotation", "scale"),
    formula=f"R² of V_t on M_t, {_WINDOW}",
    paper=f"{_PAPER}, Figs. 2 and 4",
    unsure_bias=True,
    smooth=signed_root(lambda t: correlation(_trade_off(t))),
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
        kept = enough(t, 3)
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
                    better=None,
                    invariant=("rotation", *scaled, *shifted),
                    degree=2 if steep and not prefix else 0,
                    formula=f"{word} of {what} on log10 n_t, {_WINDOW}",
                    paper=f"{_PAPER}, {figure}",
                    unsure_bias=True,
                    smooth=None if steep else signed_root(_on_frequency(index, scale, correlation)),
                    blind=_BLIND,
                )
                made.append(record(_on_frequency(index, scale, part)))
    return made


FREQUENCY_MEASURES = _family()
