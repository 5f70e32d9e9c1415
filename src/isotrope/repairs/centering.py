"""Taking the common mean away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.linear import LinearRepair, Solution, check_spread
from isotrope.repairs.repair import repair
from isotrope.repairs.spectrum import Storage
from isotrope.repairs.unit_length import UnitRowMap
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
        check_spread(moments)
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

    @property
    def affine_(self) -> Affine:
        """The map x -> x − μ."""
        if self.scaled:
            raise InputError("scaled centering is affine in a row's direction, not in the row; use transform.")
        return self._get_solution().affine

    @property
    def map_(self) -> Map:
        """What is done to rows."""
        affine = self._get_solution().affine
        return UnitRowMap(affine, keep_length=True) if self.scaled else affine
