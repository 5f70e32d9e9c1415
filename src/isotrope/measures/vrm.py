"""How far the rows' entropy along each direction is from that of an evenly spread Gaussian."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isotrope.compute.threads import slice_rows
from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, measure
from isotrope.statistics import Points

Matrix = NDArray[np.float64]

#: Rows that differ by less than this share of their length differ by rounding alone.
_SAME = 1e-12

#: Directions whose scores are sorted at once.
_COLUMNS = 64

_SEED = 20_230_723


def _range(n: int, d: int) -> Bounds:
    """All variance in one direction: r = √d there and 0 elsewhere gives 2 − 2/√d.

    Finite samples may go beyond: the estimate of e^H is up to 1.063 times that of a Gaussian of the same variance (near
    n = 500; the largest over all samples, for n = 5 to 5,000), and of Gaussian rows 1.0024 times at n = 20,000.
    """
    most = 1.0 + 0.07 * min(1.0, (1000.0 / max(n, 1)) ** 0.25)
    return (0.0, max(1.0, most**2 + 1.0 - 2.0 * most / math.sqrt(d)))


def _scores(p: Points, total: float) -> Matrix:
    """Principal component scores whose variances (ddof 1) add up to a total, (n, min(n, d))."""
    if p.n < 5:
        raise Undefined(f"the spacings of Vasicek's entropy need at least five rows, found {p.n}")
    centred = p.rows - p.rows.mean(axis=0)
    energy = float(np.einsum("ij,ij->", p.rows, p.rows))
    scatter = float(np.einsum("ij,ij->", centred, centred))
    if not scatter > _SAME**2 * energy:
        raise Undefined("the rows are all the same, so there is nothing to spread")
    centred *= math.sqrt(total * (p.n - 1) / scatter)
    return np.asarray(centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, : p.n])


def _mean_square(r: Matrix, d: int) -> float:
    """Mean of (1 − r)² over d directions; those that few rows do not have count as r = 0."""
    return (float(np.sum((1.0 - r) ** 2)) + d - len(r)) / d


def _entropies(scores: Matrix) -> Matrix:
    """Vasicek's entropy of each column, (n, k) -> (k,); −∞ where more than 2m scores are equal."""
    n = len(scores)
    m = int(math.sqrt(n) + 0.5)
    above, below = np.minimum(np.arange(n) + m, n - 1), np.maximum(np.arange(n) - m, 0)
    found = np.empty(scores.shape[1])
    for part in slice_rows(len(found), _COLUMNS):
        columns = np.sort(scores[:, part].T, axis=1)
        with np.errstate(divide="ignore"):
            found[part] = np.log(columns[:, above] - columns[:, below]).mean(axis=1)
    return found + math.log(n / (2 * m))


def _ratios(entropies: Matrix) -> Matrix:
    return np.asarray(np.exp(entropies) / math.sqrt(2.0 * math.pi * math.e))


def _compute_published(p: Points) -> float:
    """As the authors ran it: the total variance of a random normal sample, scipy's choice of estimator by n, and the
    directions that few rows do not have left out of the sum but not of d."""
    rng = np.random.default_rng([_SEED, p.n, p.d])
    total = rng.chisquare(p.d * max(p.n - 1, 1)) / max(p.n - 1, 1)  # what the variances of n normal rows add up to
    with np.errstate(divide="ignore"):
        r = _ratios(stats.differential_entropy(_scores(p, total)))
    return float(np.sum((1.0 - r) ** 2)) / p.d


@measure(
    "sample",
    title="Vasicek ratio MSE",
    says="How unevenly the rows spread over the directions: 0 as an isotropic Gaussian, 1 or more along a few only.",
    range=_range,
    better="lower",
    invariant=("rotation", "scale", "shift"),
    slow_bias=True,
    unsure_bias=True,  # with groups left out, principal components of like strength mix, and the bias is too noisy
    enough=lambda d: 10 * d,
    formula=(
        "mean over directions of (1 − r_j)², r_j = e^{H_j}/√(2πe), H_j Vasicek's entropy (m = ⌊√n + ½⌋, ends clamped) "
        "of principal component score j, scores scaled to a total variance of d; r = 0 for the d − min(n, d) missing "
        "ones; isotropic rows give about d/(4n). published: the total variance of a random normal sample, scipy's "
        "estimator by n, missing scores left out of the sum"
    ),
    paper="Marbut, McKinney-Bock and Wheeler 2023; Marbut, Chandler and Wheeler (latent geometry), Eqs. 8 and 9",
    blind="The mean, and the shape of the spread beside its entropy: heavy tails look like a smaller spread.",
    wrong=(
        "Eq. 9 as printed, a ratio of entropies, is infinite where rows do not fill all dimensions. scipy's "
        "differential_entropy by default changes its estimator with n (at 10 and at 1,000 rows): say method='vasicek'."
    ),
    variants={"published": _compute_published},
    headline=10,
)
def vrm(p: Points) -> float:
    """Mean squared distance from 1 of the entropy ratio along each principal component.

    >>> round(vrm(np.random.default_rng(0).normal(size=(4000, 8))), 2)
    0.0
    """
    return _mean_square(_ratios(_entropies(_scores(p, p.d))), p.d)
