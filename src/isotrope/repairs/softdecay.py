"""SoftDecay: bending the singular values so that weak directions come closer to the strongest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.fit_data import check_spread, collect
from isotrope.repairs.linear import LinearRepair, Solution
from isotrope.repairs.repair import repair
from isotrope.repairs.spectrum import Storage, compute_singular_directions, find_resolved
from isotrope.repairs.unit_length import NormalizedMap
from isotrope.softdecay.formula import check_alpha, decay, find_shifted_alpha, find_violation
from isotrope.statistics import Moments

Vector = NDArray[np.float64]

#: Where the paper looks for the best alpha of a set of vectors (footnote 5).
ALPHAS = (-0.2, -0.4, -0.6, -0.8, -1.0)

#: Below it, −α bends nothing that float64 could show, and its products would lose their digits.
_NOTHING = 1e-100

#: Strength of the scale-free form: the argument of log(1 + x) at the median singular value. Between 2.8 and 9.4 STS
#: scores differ by less than a point in the spaces of the validation; few rows and weighted tokens need less.
FIRMNESS = 4.0

#: The number of rows that the scale-free form scales singular values to: they grow with the square root of the number.
_ROWS = 3_000

_EPS = float(np.finfo(np.float64).eps)

#: What to do about a singular value outside the domain of a form.
_ADVICE = {
    "largest": "below it small values would overtake it: scale the rows up, say reference_rows, or use 'shifted'",
    "smallest": "raise the tolerance, or use the form 'clipped'",
}


def soft_decay(values: Vector, alpha: float, form: str = "shifted") -> Vector:
    """f(x) = −ln(1 − α(x + α))/α of singular values, before the largest is put back in its place; x itself at α = 0.

    Args:
        values: singular values.
        alpha: α, how strongly they are bent.
        form: "paper" (the formula; below a = −α it is negative, below a − 1/a undefined), "clipped" (never negative) or
            "shifted" (f − f(0), for 0 < a < 1).

    References:
        Yan et al. 2022, Eq. 2.

    Examples:
        >>> soft_decay(np.array([0.6, 5.0]), -0.6, "paper").round(12).tolist() == [0.0, round(np.log(3.64) / 0.6, 12)]
        True
    """
    a = -alpha
    if a < _NOTHING:
        return np.asarray(values, dtype=np.float64)
    return np.asarray(decay(values, a, form, np))


@repair("softdecay")
class SoftDecay(LinearRepair):
    """X V diag(K·f(σ)/σ) Vᵀ for uncentred rows X = U Σ Vᵀ, K such that the largest singular value is kept.

    Directions in which no row lies become zero. Directions that are weaker than the rounding of the rows' storage type
    are left alone: their gain is 1.

    Args:
        alpha: how strongly it bends, below 0.
        form: "shifted", "clipped" or "paper", see `soft_decay`.
        reference_rows: None bends the singular values of the rows as they are, which grow with their number, as the
            paper does; r bends σ·√(r/n), alike for any n.
        tolerance: singular values at or below this share of the largest stay zero, by default max(n, d) times
            float64's epsilon; what the accumulated products cannot tell from zero does so in any case.
        normalize: divide rows by their length first, at fit and at transform.

    References:
        Yan et al. 2022, which uses the form "paper".

    Examples:
        >>> rows = np.diag([8.0, 4.0, 1.0])
        >>> np.diag(SoftDecay(alpha=-0.6).fit_transform(rows)).round(2).tolist()
        [8.0, 5.82, 2.47]
        >>> np.diag(SoftDecay(alpha=-0.6, form="paper").fit_transform(rows)).round(2).tolist()
        [8.0, 5.25, 1.02]
    """

    def __init__(
        self,
        alpha: float = -0.6,
        form: str = "shifted",
        *,
        reference_rows: int | None = None,
        tolerance: float | None = None,
        normalize: bool = False,
    ) -> None:
        self.alpha = alpha
        self.form = form
        self.reference_rows = reference_rows
        self.tolerance = tolerance
        self.normalize = normalize

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The map from the right singular vectors; `spectrum` is what was bent."""
        self._check_parameters()
        if moments.n == 0 and moments.zero:  # a matrix of zeros stays as it is
            return Solution(Affine(np.zeros(moments.d), np.eye(moments.d)), np.empty(0), np.empty(0))
        check_spread(moments.n, moments.d, constant=moments.constant)
        values, directions = compute_singular_directions(moments)
        tolerance = max(moments.n, moments.d) * _EPS if self.tolerance is None else self.tolerance
        kept = values > tolerance * values[0]
        values, directions = values[kept], directions[:, kept]
        resolved = find_resolved(values / np.sqrt(moments.n), directions, moments, storage)
        if self.reference_rows is not None:
            values = values * np.sqrt(self.reference_rows / moments.n)
        bendable = np.where(resolved, values, values[0])  # the strongest direction has the gain 1
        _check_values(bendable, self.alpha, self.form)
        bent = soft_decay(bendable, self.alpha, self.form)
        gains = (values[0] / bent[0]) * (bent / bendable)
        weight = (directions * gains) @ directions.T
        return Solution(Affine(np.zeros(moments.d), weight), values, gains, int(np.count_nonzero(~resolved)))

    @property
    def _of_unit_rows(self) -> bool:
        return self.normalize

    def _make_map(self, affine: Affine) -> Map:
        return NormalizedMap(affine, "input") if self.normalize else affine

    def _check_parameters(self) -> None:
        check_alpha(self.alpha, self.form, allow_zero=True)
        if self.reference_rows is not None and not self.reference_rows >= 1:
            raise InputError(
                f"reference_rows is {self.reference_rows}, expected at least 1, or None for the rows' own."
            )
        if self.tolerance is not None and not 0.0 <= self.tolerance < 1.0:
            raise InputError(f"tolerance is {self.tolerance}, expected a share of the largest value, 0 to below 1.")


def _check_values(values: Vector, alpha: float, form: str) -> None:
    """Refuse singular values, (r,), where the formula is undefined or small ones overtake the largest."""
    if -alpha < _NOTHING:
        return
    if violation := find_violation(float(values[0]), float(values.min()), -alpha, form):
        raise InputError(f"{violation.fact}; {_ADVICE[violation.which]}.")


def search_alpha(
    X: Any, score: Callable[[SoftDecay], float], *, alphas: Sequence[float] = ALPHAS, **parameters: Any
) -> SoftDecay:
    """The fitted SoftDecay with the highest score, of several alphas, from one pass over the rows.

    Args:
        X: rows, as for `fit`.
        score: of a fitted repair, higher is better. Measure it on data that are not reported on afterwards: the paper
            chose on its test sets.
        alphas: those to compare; what is outside the domain is passed over.
        parameters: the other ones of `SoftDecay`.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(99, 4)) + 1.0
        >>> search_alpha(rows, lambda found: -abs(found.alpha + 0.5)).alpha
        -0.4
    """
    collected = collect(X, of_unit_rows=bool(parameters.get("normalize", False)))
    best: tuple[float, SoftDecay] | None = None
    refused: InputError | None = None
    for alpha in alphas:
        candidate = SoftDecay(alpha, **parameters)
        try:
            candidate.fit_collected(collected)
        except InputError as error:
            refused = error
            continue
        found = float(score(candidate))
        if best is None or found > best[0]:
            best = found, candidate
    if best is None:
        raise refused or InputError("got no alpha to try, expected at least one.")
    return best[1]


def fit_scale_free_softdecay(rows: Any, firmness: float = FIRMNESS) -> SoftDecay:
    """Fit SoftDecay to rows in the form `shifted`, with the alpha that matches their scale.

    The formula of Yan et al. 2022 changes long rows more than short ones. Here a/(1 − a²), a = −alpha, is chosen such
    that its product with the median singular value of 3,000 rows is `firmness`.

    Args:
        rows: rows, (n, d), or moments.
        firmness: strength of the repair.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(2000, 8)) * [9, 9, 1, 1, 1, 1, 1, 1] + 5
        >>> long, short = fit_scale_free_softdecay(1000 * x), fit_scale_free_softdecay(x)
        >>> np.allclose(long.gains_, short.gains_)
        True
    """
    found = collect(rows)
    moments = found.moments
    singular = moments.singular_values[moments.singular_values > 0]
    if len(singular) < 2:
        raise InputError(
            f"got {moments.n:,} rows that spread in {len(singular)} directions, expected at least two; there is "
            "nothing to repair in such a space, so choose other layers or another pooling."
        )
    slope = firmness / (float(np.median(singular)) * math.sqrt(_ROWS / moments.n))
    return SoftDecay(find_shifted_alpha(slope), "shifted", reference_rows=_ROWS).fit_collected(found)
