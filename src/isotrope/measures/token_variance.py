"""How the variance splits into variance within token types and between them."""

from __future__ import annotations

from typing import NamedTuple

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import TokenStatistics, TokenTable
from isotrope.statistics.token_tables import in_window, table

_PAPER = "Yamagiwa and Shimodaira 2024 (norm and variance), Eqs. 9 to 13"
_BLIND = "What the types are: a corpus of few types shifts variance into them."
_WRONG = "Q_t − M_t, and running means in float32: they lose 1 to 20 % of a type's variance at V/Q = 8e-4."
_OPEN = (
    f"{_BLIND} A type seen once has no variance of its own, so more text always moves variance from between the types "
    "to within them: it has no interval, and is to be compared at equal n."
)


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


def _within_share(t: TokenStatistics | TokenTable) -> float:
    s = split(t)
    return s.within / s.q


def _between_share(t: TokenStatistics | TokenTable) -> float:
    s = split(t)
    return s.between / s.q


def _within_of_variance(t: TokenStatistics | TokenTable) -> float:
    s = split(t)
    if not s.within + s.between > 1e-24 * s.q:  # what rounding leaves of no variance
        raise Undefined("the rows are all the same, so there is no variance to split")
    return s.within / (s.within + s.between)


def _mean_share(t: TokenStatistics | TokenTable) -> float:
    s = split(t)
    return s.m / s.q


@measure(
    "tokens",
    title="Within-type variance V_W",
    says="Average squared distance of a token from the mean of its own type: what context adds.",
    range=(0.0, float("inf")),
    better=None,
    invariant=("rotation", "shift"),
    degree=2,
    formula="V_W = Σ p_t V_t",
    paper=_PAPER,
    wrong=_WRONG,
    estimate=False,
    blind=_OPEN,
)
def within_variance(t: TokenStatistics | TokenTable) -> float:
    """Frequency-weighted mean of the variance of each type."""
    return split(t).within


@measure(
    "tokens",
    title="Between-type variance V_B",
    says="Spread of the types' means around the overall mean: what the word alone decides.",
    range=(0.0, float("inf")),
    better=None,
    invariant=("rotation", "shift"),
    degree=2,
    formula="V_B = Σ p_t ‖μ_t − μ‖²",
    paper=_PAPER,
    wrong="V − V_W, a rest that holds the rounding errors of both; here it is summed up directly.",
    estimate=False,
    blind=_OPEN,
)
def between_variance(t: TokenStatistics | TokenTable) -> float:
    """Frequency-weighted squared distance of the types' means from the overall mean."""
    return split(t).between


@measure(
    "tokens",
    title="Share of the mean M/Q",
    says="Share of the squared length that all tokens have in common.",
    range=(0.0, 1.0),
    better="lower",
    invariant=("rotation", "scale"),
    formula="M/Q; published: over types of 10 to 100,000 occurrences",
    paper=_PAPER,
    blind=_BLIND,
    variants={"published": lambda t: _mean_share(in_window(t))},
)
def mean_share(t: TokenStatistics | TokenTable) -> float:
    """Squared norm of the mean over the mean squared norm."""
    return _mean_share(t)


@measure(
    "tokens",
    title="Within-type share V_W/Q",
    says="Share of the squared length that comes from context: how much tokens of one type differ.",
    range=(0.0, 1.0),
    better=None,
    invariant=("rotation", "scale"),
    formula="V_W/Q; published: over types of 10 to 100,000 occurrences",
    paper=_PAPER,
    estimate=False,
    blind=_OPEN,
    variants={"published": lambda t: _within_share(in_window(t))},
    headline=9,
)
def within_share(t: TokenStatistics | TokenTable) -> float:
    """Within-type variance over the mean squared norm."""
    return _within_share(t)


@measure(
    "tokens",
    title="Between-type share V_B/Q",
    says="Share of the squared length that comes from which word it is.",
    range=(0.0, 1.0),
    better=None,
    invariant=("rotation", "scale"),
    formula="V_B/Q; published: over types of 10 to 100,000 occurrences",
    paper=_PAPER,
    estimate=False,
    blind=_OPEN,
    variants={"published": lambda t: _between_share(in_window(t))},
)
def between_share(t: TokenStatistics | TokenTable) -> float:
    """Between-type variance over the mean squared norm."""
    return _between_share(t)


@measure(
    "tokens",
    title="Within-type part of the variance V_W/V",
    says="How much of the spread is context rather than word: 0 the word decides all, 1 the context.",
    range=(0.0, 1.0),
    better=None,
    invariant=("rotation", "scale", "shift"),
    formula="V_W/V; published: over types of 10 to 100,000 occurrences",
    paper=_PAPER,
    estimate=False,
    blind=_OPEN,
    variants={"published": lambda t: _within_of_variance(in_window(t))},
)
def within_of_variance(t: TokenStatistics | TokenTable) -> float:
    """Within-type variance over the total variance."""
    return _within_of_variance(t)
