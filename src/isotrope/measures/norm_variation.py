"""How much the lengths of rows vary."""

from __future__ import annotations

import math

from scipy.special import gammaln

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Moments


def _compute_null(n: int, d: int) -> float:
    """The coefficient of variation of a chi variable, which the length of a Gaussian row is."""
    mean = math.sqrt(2.0) * math.exp(float(gammaln((d + 1) / 2.0) - gammaln(d / 2.0)))
    return math.sqrt(max(0.0, d / mean**2 - 1.0))


@measure(
    "moments",
    title="Variation of norms",
    says="Standard deviation of the rows' lengths over their mean: 0 all are of one length and all metrics agree.",
    range=lambda n, d: (0.0, math.sqrt(max(n - 1, 1))),
    null=_compute_null,
    formula="√(E(‖x‖ − E‖x‖)²)/E‖x‖, over all rows, accumulated centred",
    paper="coefficient of variation; norm_cv of vecscope 0.2",
    blind="Directions. Rows of zeros, which are left out.",
)
def norm_variation(m: Moments) -> float:
    """Coefficient of variation of the lengths of the rows.

    >>> import numpy as np
    >>> norm_variation(np.array([[1.0, 0.0], [0.0, 3.0]]))
    0.5
    """
    if m.n < 1:
        raise Undefined("there are no rows")
    if math.isnan(m.norms.mean):
        raise Undefined("the lengths of the rows are not known: they went through a map, or are of an earlier version")
    return math.sqrt(m.norms.scatter / m.n) / m.norms.mean
