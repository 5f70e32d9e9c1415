"""How uniformly directions cover the sphere, by the mean closeness of all pairs."""

from __future__ import annotations

import math

from scipy import special

from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, measure
from isotrope.statistics import Points

_T = 0.5


def _range(n: int, d: int) -> Bounds:
    n = max(n, 2)
    return (-2.0 * n / ((n - 1) * _T), 0.0)


def _null(n: int, d: int) -> float:
    """Over the uniform sphere exp(2 cos/t) has the mean ₀F₁(d/2; 1/t²), a Bessel function."""
    return -2.0 / _T + math.log(float(special.hyp0f1(d / 2, 1.0 / _T**2)))


@measure(
    "sample",
    title="RBF distance",
    says="How close random pairs of unit rows are: 0 all the same, −4 as far apart as orthogonal rows.",
    range=_range,
    better="lower",
    null=_null,
    formula="log mean_{i<j} exp(−‖u_i − u_j‖²/t), t = 0.5, u = x/‖x‖; isotropic rows give about −2/t + 2/(t²d)",
    paper="Yan et al. 2022 (SoftDecay), Eq. 4; Wang and Isola 2020 (uniformity)",
    blind="Lengths. A few close pairs outweigh many distant ones: it is the logarithm of a mean of exponentials.",
    wrong="t as a factor, exp(−0.5·‖u_i − u_j‖²): the paper divides by t = 0.5, Wang and Isola multiply by t = 2.",
    cost="pairs",
)
def rbf_distance(p: Points, t: float = _T) -> float:
    """Logarithm of the mean Gaussian kernel over distinct pairs of unit rows.

    >>> import numpy as np
    >>> round(rbf_distance(np.eye(5)), 12)
    -4.0
    """
    if p.n < 2:
        raise Undefined("a distance between distinct rows needs at least two rows")
    mean = float(special.logsumexp(p.unit.log_kernel(t))) - math.log(p.n * (p.n - 1.0))
    return min(0.0, mean)  # rounding, where all rows point the same way
