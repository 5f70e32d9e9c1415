"""Whether the common direction of the rows lies in a few coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import Smooth, measure
from isotrope.statistics import Moments

_PAPER = "Timkey and van Schijndel 2021; Kovaleva et al. 2021 (outlier dimensions)"
_SHARES = "shares (mean u_j)²/‖mean u‖² of the coordinates j in the mean cosine, u = x/‖x‖"

#: How many times as long as by chance the squared mean of unit rows has to be for its shares to be more than chance.
_BEYOND_CHANCE = 4.0

#: Below this length the mean of unit rows is what rounding leaves of nothing.
_NOTHING = 1e-12


def _shares(m: Moments) -> NDArray[np.float64]:
    """Each coordinate's share of the squared mean of unit rows, largest first, (d,)."""
    squares = np.sort(m.unit_mean**2)[::-1]
    if m.n < 1 or not squares.sum() > _NOTHING**2:
        raise Undefined("the rows' directions cancel out, so that there is no mean cosine to share")
    return np.asarray(squares / squares.sum())


def _by_chance(m: Moments) -> bool:
    """Whether independent rows without a common direction would have as long a mean: its square is then about 1/n."""
    return m.n * float(m.unit_mean @ m.unit_mean) < _BEYOND_CHANCE


def _note(m: Moments) -> str | None:
    return "the rows have no common direction beyond chance, so these are shares of chance" if _by_chance(m) else None


def _lasting(m: Moments) -> float:
    if _by_chance(m):
        raise Undefined("the rows have no common direction beyond chance")
    return float(_shares(m)[0])


@measure(
    "moments",
    group="spread",
    title="Outlier dimensions",
    says="How many coordinates carry half of the mean cosine: one or two of hundreds are outliers.",
    range=lambda n, d: (1.0, float(max((d + 1) // 2, 1))),
    better="higher",
    invariant=("scale",),
    estimate=False,
    note=_note,
    formula=f"fewest coordinates whose {_SHARES} add up to a half",
    paper=_PAPER,
    blind="Directions that are not coordinates. A count with a sharp threshold: it has no interval.",
)
def outlier_dimensions(m: Moments) -> float:
    """Number of coordinates that carry half of the mean cosine.

    >>> outlier_dimensions(np.array([[1.0, 0.0, 0.0], [9.0, 1.0, 0.0]]))
    1.0
    """
    return float(np.searchsorted(np.cumsum(_shares(m)), 0.5 - 1e-12) + 1)


@measure(
    "moments",
    group="spread",
    title="Outlier dimension share",
    says="Share of the mean cosine that the strongest single coordinate carries.",
    range=lambda n, d: (1.0 / d, 1.0),
    better="lower",
    invariant=("scale",),
    unsure_bias=True,
    length_power=0,
    smooth=Smooth(_lasting, lambda value, _: value, lambda low, high: (low, high)),
    note=_note,
    formula=f"largest of the {_SHARES}",
    paper=_PAPER,
    blind="Directions that are not coordinates. Without a common direction the shares are chance and have no interval.",
    headline=8,
)
def outlier_dimension_share(m: Moments) -> float:
    """Largest share of one coordinate in the mean cosine."""
    return float(_shares(m)[0])
