"""How many dimensions the rows fill locally, by how fast neighbours come in with distance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Points

_K = 20

#: Share of the largest ratios that TwoNN leaves out of its fit.
_LEFT_OUT = 0.1

#: Standard deviation of √n·D̂/D of TwoNN's fit on independent ratios, n large. With E the order statistics of
#: exponential variables, Q(p) = −log(1 − p) what they should be and a = 0.9 their kept share, D̂/D = Σ E Q/Σ E²; to
#: first order that is 1 − Σ Q (E − Q)/Σ Q², whose variance is ∫₀ᵃ (∫ₛᵃ Q/(1 − s))² ds/(∫₀ᵃ Q²)².
_TWONN_SPREAD = 1.07616

#: A neighbour closer than this share of the typical distance between rows is a near-duplicate.
_NEAR = 1e-5

_BLIND = (
    "Curvature and noise: it is the dimension at the scale of the nearest neighbours. With few rows in many dimensions "
    "it is far too low (isotropic 64-d: {values} at n = 1,000 and 16,000): its interval is about the value at this n, "
    "and it is to be compared at equal n. Near-duplicates ruin it: they are counted and said."
)
_ERROR_BLIND = (
    "Rows that are not independent, as the tokens of one sequence, and the bias by n: it is the error that as many "
    "independent {what} would have, and has no interval itself."
)


def near_duplicates(p: Points) -> int:
    """How many distinct rows have another closer than 1e-5 of the typical distance between rows."""
    rows = p.distinct
    typical = math.sqrt(2.0 * float(np.mean(np.var(rows.rows, axis=0))) * rows.d)
    return int((rows.neighbours.distance[:, 0] < _NEAR * typical).sum())


def _note(p: Points) -> str | None:
    notes = []
    if repeated := p.n - p.distinct.n:
        notes.append(f"{repeated:,} rows repeat others and are left out")
    if near := near_duplicates(p):
        notes.append(f"{near:,} of {p.distinct.n:,} rows have a near-duplicate, which makes the dimension meaningless")
    return "; ".join(notes) or None


def _distances(p: Points, k: int) -> NDArray[np.float64]:
    """Distances to the k nearest others of each distinct row, (n, k)."""
    if p.distinct.n <= k:
        raise Undefined(f"needs at least {k + 1} different rows, found {p.distinct.n}")
    return p.distinct.neighbours.distance[:, :k]


def _positive(inverse: float) -> float:
    if not inverse > 1e-12:
        raise Undefined("all neighbours are at the same distance, so they tell of no dimension")
    return inverse


def _twonn(p: Points) -> tuple[float, int]:
    """TwoNN's dimension, and the number of rows it is from."""
    first, second = _distances(p, 2).T
    n = len(first)
    kept = int(n * (1 - _LEFT_OUT))
    x = np.sort(np.log(second / first))[:kept]
    y = -np.log(1.0 - np.arange(1, kept + 1) / n)
    return float(x @ y) / _positive(math.sqrt(float(x @ x) / kept)) ** 2 / kept, n


def _mle(p: Points, k: int) -> tuple[float, int]:
    """The maximum likelihood dimension, and the number of rows it is from."""
    distance = _distances(p, k)
    inverse = np.log(distance[:, -1:] / distance[:, :-1]).mean(axis=1)
    return 1.0 / _positive(float(inverse.mean())), len(distance)


_SHARED: dict[str, Any] = {
    "group": "neighbours",
    "range": (0.0, math.inf),
    "invariant": ("rotation", "scale", "shift"),
    "enough": lambda d: 1_000,
    "note": _note,
}


@measure(
    "sample",
    title="Intrinsic dimension, TwoNN",
    says="How many dimensions the rows fill locally, from each row's two nearest neighbours.",
    at_n=True,
    formula=(
        "slope through the origin of −log(1 − F(μ)) on log μ, μ = r₂/r₁ of each distinct row, F its empirical law, the "
        "tenth of largest μ left out"
    ),
    paper="Facco, d'Errico, Rodriguez and Laio 2017",
    blind=_BLIND.format(values="37 and 41"),
    wrong="Repeated rows kept: their r₁ is 0. Near-duplicates kept in silence: a dimension of 0.08.",
    **_SHARED,
)
def intrinsic_dimension_twonn(p: Points) -> float:
    """Dimension from the ratio of the distances to the two nearest neighbours."""
    return _twonn(p)[0]


@measure(
    "sample",
    title="Intrinsic dimension, TwoNN, standard error",
    says="Standard error of the TwoNN dimension, were the rows independent.",
    estimate=False,
    formula="1.076·D/√n, D TwoNN's dimension, n distinct rows: the spread of the fit on independent Pareto ratios",
    paper="Facco, d'Errico, Rodriguez and Laio 2017 (the law of μ)",
    blind=_ERROR_BLIND.format(what="rows"),
    **_SHARED,
)
def intrinsic_dimension_twonn_error(p: Points) -> float:
    """Standard error of the TwoNN dimension on independent rows."""
    dimension, n = _twonn(p)
    return _TWONN_SPREAD * dimension / math.sqrt(n)


@measure(
    "sample",
    title="Intrinsic dimension, maximum likelihood",
    says="How many dimensions the rows fill locally, from each row's twenty nearest neighbours.",
    at_n=True,
    formula="inverse of the mean over distinct rows and j < k of log(r_k/r_j), k = 20",
    paper="Levina and Bickel 2004, combined over rows as MacKay and Ghahramani 2005",
    blind=_BLIND.format(values="30 and 37"),
    wrong="The mean of the rows' dimensions, not the inverse of the mean of their inverses: too high by 1/(k − 2).",
    **_SHARED,
)
def intrinsic_dimension_mle(p: Points, k: int = _K) -> float:
    """Dimension of greatest likelihood given the distances to the nearest neighbours."""
    return _mle(p, k)[0]


@measure(
    "sample",
    title="Intrinsic dimension, maximum likelihood, standard error",
    says="Standard error of the maximum likelihood dimension, were the rows' neighbourhoods independent.",
    estimate=False,
    formula="D/√(n(k − 1)), D the dimension, n distinct rows, k = 20",
    paper="Levina and Bickel 2004",
    blind=_ERROR_BLIND.format(what="neighbourhoods"),
    **_SHARED,
)
def intrinsic_dimension_mle_error(p: Points, k: int = _K) -> float:
    """Standard error of the maximum likelihood dimension on independent neighbourhoods."""
    dimension, n = _mle(p, k)
    return dimension / math.sqrt(n * (k - 1))
