"""Removing the common mean, alone or with the few strongest directions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.fit_data import check_spread
from isotrope.repairs.linear import LinearRepair, Solution
from isotrope.repairs.repair import repair
from isotrope.repairs.spectrum import Storage, compute_principal_directions
from isotrope.repairs.unit_length import NormalizedMap
from isotrope.statistics import Moments


@repair("centering")
class Centering(LinearRepair):
    """x − μ; scaled: x − ‖x‖·mean(u), u = x/‖x‖, which takes the mean of the directions away.

    The scaled form is not affine in x (it is in u), so it has no `affine_`; it has an exact inverse all the same.

    Args:
        scaled: whether the mean of the directions is taken away, times the row's length, and not the mean of the rows.

    Examples:
        >>> Centering().fit_transform(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
        [[-1.0, -2.0], [1.0, 2.0]]
    """

    def __init__(self, *, scaled: bool = False) -> None:
        self.scaled = scaled

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The mean, of rows or of their directions; every direction keeps its strength."""
        check_spread(moments.n, moments.d, constant=moments.constant)
        mean = moments.unit_mean if self.scaled else moments.mean
        # Directions are not needed, and finding them is the only part that takes time: see spectrum_.
        return Solution(Affine(mean, np.eye(moments.d)), np.empty(0), np.empty(0))

    @property
    def spectrum_(self) -> NDArray[np.float64]:
        """The standard deviation along each direction that the rows have, descending, (r,)."""
        self._check_is_fitted()
        values = self.moments_.eigenvalues
        return np.sqrt(values[values > 0] / (self.moments_.n - 1))

    @property
    def gains_(self) -> NDArray[np.float64]:
        """Ones, (r,): no direction is made stronger or weaker."""
        return np.ones(len(self.spectrum_))

    def _make_map(self, affine: Affine) -> Map:
        return NormalizedMap(affine, "input", keeps_length=True) if self.scaled else affine


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
        check_spread(moments.n, moments.d, constant=moments.constant)
        values, directions = compute_principal_directions(moments)
        if count >= len(values):
            raise InputError(
                f"n_directions is {count}, expected at most {len(values) - 1}: {moments.n:,} rows of width {moments.d} "
                f"(n_features={moments.d}) have {len(values)} directions, and nothing would be left."
            )
        top = directions[:, :count]
        gains = np.where(np.arange(len(values)) < count, 0.0, 1.0)
        return Solution(Affine(moments.mean, np.eye(moments.d) - top @ top.T), np.sqrt(values / (moments.n - 1)), gains)
