"""In how many directions the rows spread, by the squares of the variances."""

from __future__ import annotations

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Moments


@measure(
    "moments",
    title="Participation ratio",
    says="In how many directions the rows spread around their mean; strong directions count most.",
    range=lambda n, d: (1.0, float(min(max(n - 1, 1), d))),
    better="higher",
    invariant=("rotation", "scale", "shift"),
    slow_bias=True,
    formula="(Σλ)²/Σλ², λ eigenvalues of the covariance; IsoScore is (PR − 1)/(d − 1)",
    paper="Gao et al. 2017; effective_rank of vecscope 0.2",
    blind="The mean, and weak directions. With few rows it is biased low: about d/(1 + d/n) for isotropic rows.",
    wrong="Called effective rank, which is the exponential of an entropy (effective_rank_eigenvalues): higher.",
    relative=True,
)
def participation_ratio(m: Moments) -> float:
    """Squared trace of the covariance over its squared Frobenius norm.

    >>> import numpy as np
    >>> round(participation_ratio(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])), 12)
    2.0
    """
    if m.n < 2:
        raise Undefined("the participation ratio needs at least two rows")
    if m.constant:
        raise Undefined("the rows are all the same, so there is no variance to share")
    shares = m.scatter / m.scatter.trace()
    return min(float(m.d), max(1.0, 1.0 / float((shares**2).sum())))
