"""Whether the nearest row is nearer than any row."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import DISTINCT, SHARED
from isotrope.statistics import Points


def _compute_null(n: int, d: int) -> float:
    """The median over isotropic directions: their mean distance is 1, and the law of the largest cosine is known."""
    if d < 2 or n < 2:
        return math.nan
    half = (d - 1) / 2.0
    exceeded = -math.expm1(-math.log(2.0) / (n - 1))  # in half of the cases no other row has a larger cosine
    nearest = 2.0 * (1.0 - float(stats.beta.isf(exceeded, half, half)))
    return 1.0 / nearest


@measure(
    "sample",
    title="Relative contrast",
    says="How many times nearer the nearest row is than the average row: near 1 distances carry no signal.",
    better="higher",
    null=_compute_null,
    formula="median over rows of mean_j (1 − cos(x_i, x_j)) / min_j (1 − cos(x_i, x_j)), over distinct directions",
    paper="He, Kumar and Chang 2012 (relative contrast); Beyer et al. 1999",
    blind=f"Rows far from the median. It grows with n, and its interval is about the value at this n. {DISTINCT}",
    wrong="The mean distance over the median of nearest distances (vecscope 0.2): within 1 % of this on real vectors.",
    **SHARED | {"range": (1.0, math.inf)},
)
def relative_contrast(p: Points) -> float:
    """Median ratio of the mean cosine distance to the nearest one."""
    directions = p.unit.distinct
    if directions.n < 2:
        raise Undefined("needs two rows that point in different directions")
    nearest = directions.neighbours.distance[:, 0] ** 2 / 2.0
    return max(1.0, float(np.median(directions.mean_squared_distances / 2.0 / nearest)))
