"""How the variance splits into variance within token types and between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import TokenStatistics, TokenTable
from isotrope.statistics.token_tables import in_window, table

_BLIND = "What the types are: a corpus of few types shifts variance into them."
_OPEN = (
    f"{_BLIND} A type seen once has no variance of its own, so more text always moves variance from between the types "
    "to within them: it has no interval, and is to be compared at equal n."
)
_SHARED: dict[str, Any] = {
    "paper": "Yamagiwa and Shimodaira 2024 (norm and variance), Eqs. 9 to 13",
    "estimate": False,
    "blind": _OPEN,
}
_ABSOLUTE: dict[str, Any] = {
    **_SHARED,
    "range": (0.0, float("inf")),
    "invariant": ("rotation", "shift"),
    "degree": 2,
}


class VarianceSplit(NamedTuple):
    """Q = M + V_W + V_B of all rows: squared length, of the mean, within types, between types."""

    q: float
    m: float
    within: float
    between: float


def split(t: TokenStatistics | TokenTable) -> VarianceSplit:
    """The decomposition over all types; the between part is computed directly, not as a rest."""
    types = table(t)
    p = types.n / types.n.sum()
    return VarianceSplit(float(p @ types.q), types.mean_square, float(p @ types.v), float(p @ types.b))


@measure(
    "tokens",
    title="Within-type variance V_W",
    says="Average squared distance of a token from the mean of its own type: what context adds.",
    formula="V_W = Σ p_t V_t",
    wrong="Q_t − M_t, and running means in float32: they lose 1 to 20 % of a type's variance at V/Q = 8e-4.",
    **_ABSOLUTE,
)
def within_variance(t: TokenStatistics | TokenTable) -> float:
    """Frequency-weighted mean of the variance of each type."""
    return split(t).within


@measure(
    "tokens",
    title="Between-type variance V_B",
    says="Spread of the types' means around the overall mean: what the word alone decides.",
    formula="V_B = Σ p_t ‖μ_t − μ‖²",
    wrong="V − V_W, a rest that holds the rounding errors of both; here it is summed up directly.",
    **_ABSOLUTE,
)
def between_variance(t: TokenStatistics | TokenTable) -> float:
    """Frequency-weighted squared distance of the types' means from the overall mean."""
    return split(t).between


def _add_share(share: Callable[[VarianceSplit], float], name: str, formula: str, **record: Any) -> None:
    """Register a share of the split, over all types or, as published, over those in the window."""

    def of_all(t: TokenStatistics | TokenTable) -> float:
        return share(split(t))

    of_all.__doc__ = share.__doc__
    measure(
        "tokens",
        name=name,
        range=(0.0, 1.0),
        formula=f"{formula}; published: over types of 10 to 100,000 occurrences",
        variants={"published": lambda t: of_all(in_window(t))},
        **{**_SHARED, **record},
    )(of_all)


def _mean_share(s: VarianceSplit) -> float:
    """Squared norm of the mean over the mean squared norm."""
    return s.m / s.q


def _within_share(s: VarianceSplit) -> float:
    """Within-type variance over the mean squared norm."""
    return s.within / s.q


def _between_share(s: VarianceSplit) -> float:
    """Between-type variance over the mean squared norm."""
    return s.between / s.q


def _within_of_variance(s: VarianceSplit) -> float:
    """Within-type variance over the total variance."""
    if not s.within + s.between > 1e-24 * s.q:  # what rounding leaves of no variance
        raise Undefined("the rows are all the same, so there is no variance to split")
    return s.within / (s.within + s.between)


_add_share(
    _mean_share,
    "mean_share",
    "M/Q",
    title="Share of the mean M/Q",
    says="Share of the squared length that all tokens have in common.",
    better="lower",
    estimate=True,
    blind=_BLIND,
)
_add_share(
    _within_share,
    "within_share",
    "V_W/Q",
    title="Within-type share V_W/Q",
    says="Share of the squared length that comes from context: how much tokens of one type differ.",
    headline=9,
)
_add_share(
    _between_share,
    "between_share",
    "V_B/Q",
    title="Between-type share V_B/Q",
    says="Share of the squared length that comes from which word it is.",
)
_add_share(
    _within_of_variance,
    "within_of_variance",
    "V_W/V",
    title="Within-type part of the variance V_W/V",
    says="How much of the spread is context rather than word: 0 the word decides all, 1 the context.",
    invariant=("rotation", "scale", "shift"),
)
