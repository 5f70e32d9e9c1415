"""Squared lengths: of the rows, of their mean, of what is left after the mean is removed."""

import math
import sys
from collections.abc import Callable

from isotrope.errors import Undefined
from isotrope.measures.record import Smooth, measure
from isotrope.statistics import Moments

_PAPER = "Yamagiwa and Shimodaira 2024 (norm and variance), Eqs. 4 to 8"
_ANY = (0.0, math.inf)

#: The largest power of e in float64.
_LARGEST_POWER = math.log(sys.float_info.max)


def _some(m: Moments) -> Moments:
    if m.n < 1:
        raise Undefined("there are no rows")
    return m


# A length has a corner at zero, where its square has none.
_SQUARED = Smooth(
    of=lambda m: float(_some(m).mean @ m.mean),
    forward=lambda value, _: value**2,
    back=lambda low, high: (math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))),
)


def _on_log_scale(of: Callable[[Moments], float]) -> Smooth:
    """Intervals on the log scale, which hold more often for averages of squared lengths: these are skewed."""
    return Smooth(
        of=lambda m: _log(of(m)),
        forward=lambda value, _: _log(value),
        back=lambda low, high: (_exp(low), _exp(high)),
    )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else math.nan


def _exp(value: float) -> float:
    """e to a power, infinite where float64 ends."""
    return math.inf if value > _LARGEST_POWER else math.exp(value)


def _mean_square(m: Moments) -> float:
    return _some(m).energy / m.n


def _variance(m: Moments) -> float:
    return float(_some(m).scatter.trace()) / m.n


@measure(
    "moments",
    title="Drift norm",
    says="Length of the mean row: how far the whole space has drifted from the origin.",
    range=_ANY,
    better="lower",
    invariant=("rotation",),
    degree=1,
    smooth=_SQUARED,
    length_power=1,
    formula="‖μ‖₂",
    paper="Godey et al. 2023 (anisotropy), section 3.3",
    blind="The scale of the rows: compare it with their length (drift_share).",
)
def drift_norm(m: Moments) -> float:
    """Euclidean length of the mean row."""
    return math.sqrt(float(_some(m).mean @ m.mean))


@measure(
    "moments",
    title="Mean squared norm Q",
    says="Average squared length of a row.",
    range=_ANY,
    invariant=("rotation",),
    degree=2,
    smooth=_on_log_scale(_mean_square),
    formula="Q = E‖x‖²",
    paper=_PAPER,
    blind="Directions.",
)
def mean_squared_norm(m: Moments) -> float:
    """Mean of the squared lengths of the rows."""
    return _mean_square(m)


@measure(
    "moments",
    title="Squared norm of the mean M",
    says="Squared length of the mean row.",
    range=_ANY,
    invariant=("rotation",),
    degree=2,
    length_power=1,
    formula="M = ‖E x‖²",
    paper=_PAPER,
    blind="Spread around the mean.",
)
def mean_norm_squared(m: Moments) -> float:
    """Squared length of the mean row."""
    return float(_some(m).mean @ m.mean)


@measure(
    "moments",
    title="Variance V",
    says="Average squared distance of a row from the mean row.",
    range=_ANY,
    invariant=("rotation", "shift"),
    degree=2,
    smooth=_on_log_scale(_variance),
    formula="V = E‖x − μ‖², accumulated centred",
    paper=_PAPER,
    blind="In how many directions the rows spread.",
    wrong="Q − M, and running means in float32: they lose 1 to 20 % of V at V/Q = 8e-4.",
)
def variance(m: Moments) -> float:
    """Total population variance: trace of the covariance."""
    return _variance(m)


@measure(
    "moments",
    title="Drift share",
    says="Share of the rows' squared length that is common to all: 0 none, 1 all of it.",
    range=(0.0, 1.0),
    better="lower",
    null=lambda n, d: 1.0 / n,
    formula="M/Q",
    paper=_PAPER,
    blind="Dominant directions other than the mean.",
    headline=4,
    per_group=True,
)
def drift_share(m: Moments) -> float:
    """Squared norm of the mean over the mean squared norm."""
    return min(1.0, float(_some(m).mean @ m.mean) * m.n / m.energy)


@measure(
    "moments",
    title="Rank-one residual",
    says="How far the rows are from all being the same: 0 all the same, near 1 no common part.",
    range=(0.0, 1.0),
    better="higher",
    null=lambda n, d: math.sqrt(1.0 - 1.0 / n),
    formula="‖X − 1μᵀ‖_F / ‖X‖_F = √(V/Q)",
    paper="Dong, Cordonnier and Loukas 2021",
    blind="In how many directions the rest spreads.",
)
def rank_one_residual(m: Moments) -> float:
    """Distance from the rank-one collapse of pure attention."""
    return min(1.0, math.sqrt(max(0.0, float(_some(m).scatter.trace())) / m.energy))
