"""Taking the mean and the few strongest directions away."""

from __future__ import annotations

import math

import numpy as np

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine
from isotrope.repairs.linear import LinearRepair, Solution, check_spread
from isotrope.repairs.repair import repair
from isotrope.repairs.spectrum import Storage, compute_principal_directions
from isotrope.statistics import Moments


@repair("all-but-the-top")
class AllButTheTop(LinearRepair):
    """(x − μ)(I − U_D U_Dᵀ), U_D the top D principal directions of the centred rows.

    Args:
        n_directions: D, by default ⌈d/100⌉; 0 only takes the mean away.

    References:
        Mu and Viswanath 2018.

    Examples:
        >>> rows = np.array([[9.0, 1.0], [-9.0, 1.0], [0.0, -2.0]])
        >>> AllButTheTop(1).fit_transform(rows).tolist()
        [[0.0, 1.0], [0.0, 1.0], [0.0, -2.0]]
    """

    def __init__(self, n_directions: int | None = None) -> None:
        self.n_directions = n_directions

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The map that leaves the top directions out."""
        count = math.ceil(moments.d / 100) if self.n_directions is None else self.n_directions
        if count < 0:
            raise InputError(f"n_directions is {count}, expected 0 or more, or None for ⌈d/100⌉.")
        check_spread(moments)
        values, directions = compute_principal_directions(moments)
        if count >= len(values):
            raise InputError(
                f"n_directions is {count}, expected at most {len(values) - 1}: {moments.n:,} rows of width {moments.d} "
                f"(n_features={moments.d}) have {len(values)} directions, and nothing would be left."
            )
        top = directions[:, :count]
        gains = np.where(np.arange(len(values)) < count, 0.0, 1.0)
        return Solution(Affine(moments.mean, np.eye(moments.d) - top @ top.T), np.sqrt(values / (moments.n - 1)), gains)
