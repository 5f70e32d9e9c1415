"""In how many directions the rows spread, as the exponential of an entropy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.spectrum import singular_values
from isotrope.statistics import Moments


def _exp_entropy(weights: NDArray[np.float64]) -> float:
    p = weights[weights > 0] / weights.sum()
    return math.exp(-float(p @ np.log(p)))


@measure(
    "moments",
    title="Effective rank",
    says="In how many directions the rows effectively spread, the mean counted as one.",
    range=lambda n, d: (1.0, float(min(n, d))),
    better="higher",
    slow_bias=True,
    formula="exp(−Σ p ln p), p = σ/Σσ, σ singular values of the uncentred X",
    paper="Roy and Vetterli 2007; Garrido et al. 2023 (RankMe)",
    blind="A common mean lowers it however the rest is spread.",
    wrong="Eigenvalues or squared singular values under the same name: another number, effective_rank_eigenvalues.",
    fine_spectrum=True,
)
def effective_rank(m: Moments) -> float:
    """Exponential of the entropy of the normalised singular values.

    >>> round(effective_rank(np.eye(4)), 12)
    4.0
    """
    return _exp_entropy(singular_values(m))


@measure(
    "moments",
    title="Effective rank of the covariance",
    says="In how many directions the rows spread around their mean.",
    range=lambda n, d: (1.0, float(min(max(n - 1, 1), d))),
    better="higher",
    invariant=("rotation", "scale", "shift"),
    slow_bias=True,
    formula="exp(−Σ p ln p), p = λ/Σλ, λ eigenvalues of the covariance",
    paper="Roy and Vetterli 2007, on eigenvalues",
    blind="The mean: a space that has drifted far away can score full marks.",
    headline=5,
    per_group=True,
    relative=True,
    fine_spectrum=True,
)
def effective_rank_eigenvalues(m: Moments) -> float:
    """Exponential of the entropy of the normalised covariance eigenvalues."""
    if m.constant:
        raise Undefined("the rows are all the same, so their covariance has no rank")
    return _exp_entropy(m.eigenvalues)
