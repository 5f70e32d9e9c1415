"""Making all directions equally strong, wholly or in part."""

from __future__ import annotations

import numpy as np

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine
from isotrope.repairs.fit_data import check_spread
from isotrope.repairs.linear import LinearRepair, Solution
from isotrope.repairs.repair import repair
from isotrope.repairs.spectrum import Storage, compute_principal_directions, find_resolved, leave_alone
from isotrope.statistics import Moments

FORMS = ("pca", "zca")


@repair("whitening")
class Whitening(LinearRepair):
    """(x − μ) U S^{−s/2}, U S Uᵀ the covariance (over n − 1): afterwards it is S^{1−s}, the identity at strength s = 1.

    Args:
        n_components: only the first k directions, each with its largest coordinate positive.
        strength: s in [0, 1].
        form: "pca" gives k columns, "zca" turns them back into the rows' own coordinates, U_k S_k^{−s/2} U_kᵀ.
        tolerance: variances at or below this share of the largest are dropped; without one, those that rounding cannot
            tell from zero. Directions above it that are weaker than the rounding of the rows' storage type get the
            gain of the strongest one.

    References:
        Su et al. 2021, Huang et al. 2021.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([9.0, 1.0, 0.1])
        >>> np.cov(Whitening().fit_transform(rows).T).round(6).tolist() == np.eye(3).tolist()
        True
    """

    def __init__(
        self,
        n_components: int | None = None,
        strength: float = 1.0,
        *,
        form: str = "pca",
        tolerance: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.strength = strength
        self.form = form
        self.tolerance = tolerance

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The map from the covariance's eigenvectors."""
        self._check_parameters(moments)
        values, directions = compute_principal_directions(moments)
        variances = values / (moments.n - 1)
        rank = len(variances)
        if self.tolerance is not None:
            rank = int(np.count_nonzero(variances > self.tolerance * variances[0]))
        if self.n_components is not None and self.n_components > rank:
            raise InputError(
                f"n_components is {self.n_components}, expected at most {rank}: "
                f"{moments.n:,} rows of width {moments.d} have no more directions than that."
            )
        k = self.n_components or rank
        resolved = find_resolved(np.sqrt(variances[:k]), directions[:, :k], moments, storage)
        gains = leave_alone(variances[:k] ** (-self.strength / 2), resolved)
        weight = directions[:, :k] * gains
        if self.form == "zca":
            weight = weight @ directions[:, :k].T
        all_gains = np.concatenate([gains, np.zeros(len(variances) - k)])  # zero where a direction is dropped
        left_alone = int(np.count_nonzero(~resolved))
        return Solution(Affine(moments.mean, weight), np.sqrt(variances), all_gains, left_alone)

    def _check_parameters(self, m: Moments) -> None:
        if self.form not in FORMS:
            raise InputError(f"there is no form {self.form!r} of whitening; say {' or '.join(FORMS)}.")
        if not 0.0 <= self.strength <= 1.0:
            raise InputError(f"strength is {self.strength}, expected 0 (unchanged spread) to 1 (all alike).")
        if self.tolerance is not None and not 0.0 <= self.tolerance < 1.0:
            raise InputError(f"tolerance is {self.tolerance}, expected a share of the largest variance, 0 to below 1.")
        if self.n_components is not None and self.n_components < 1:
            raise InputError(f"n_components is {self.n_components}, expected at least 1, or None for all.")
        check_spread(m.n, m.d, constant=m.constant)
        if m.n <= m.d and self.n_components is None and self.tolerance is None:
            raise InputError(
                f"got {m.n:,} rows of width {m.d}: whitened, every two of them would have the same cosine, −1/(n − 1); "
                "give more rows than columns, or say n_components or tolerance."
            )
