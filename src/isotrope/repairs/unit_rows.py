"""An affine map of rows' directions, which is not affine in the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.compute.arrays import check_finite, compute_lengths, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Affine


@dataclass(frozen=True, eq=False)
class OfUnitRows:
    """x -> A(x/‖x‖), or ‖x‖·A(x/‖x‖) where rows keep their length, (n, d) -> (n, k).

    >>> moved = OfUnitRows(Affine([0.5, 0.0], np.eye(2)), keep_length=True)
    >>> moved(np.array([[6.0, 8.0]])).round(9).tolist()
    [[1.0, 8.0]]
    >>> moved.inverse()(np.array([[1.0, 8.0]])).round(9).tolist()
    [[6.0, 8.0]]
    """

    affine: Affine
    keep_length: bool

    @property
    def width(self) -> int:
        """The number of columns d that it takes."""
        return self.affine.width

    @property
    def columns(self) -> int:
        """The number of columns k that it gives."""
        return self.affine.columns

    def __call__(self, rows: Any) -> Any:
        """The images of rows; rows of zeros, which have no direction, become zeros where rows keep their length."""
        x = to_matrix(rows)
        check_finite(x)
        image = self.affine(to_unit_rows(x))
        if not self.keep_length:
            return image
        return (image * compute_lengths(x)) if is_tensor(x) else (image * compute_lengths(x)).astype(x.dtype)

    def inverse(self) -> Callable[[Any], Any]:
        """What brings rows back; their length must have been kept, and ‖A⁻¹(0)‖ must be below 1."""
        if not self.keep_length:
            raise InputError("rows were divided by their length, which cannot be brought back: there is no inverse.")
        back = self.affine.inverse()
        origin = back(np.zeros((1, self.columns)))[0]
        if not float(origin @ origin) < 1.0:
            raise InputError("all rows point the same way, so their lengths cannot be brought back.")

        def restored(images: Any) -> Any:
            """z = ‖x‖·A(u), so x = p + ‖x‖·q with p = z W⁻¹, q = A⁻¹(0); squared, that has one root ‖x‖ above zero."""
            z = to_matrix(images)
            p, q = to_float64(Affine(np.zeros(self.columns), back.weight)(z)), origin
            along, rest = p @ q, 1.0 - float(q @ q)
            length = (along + np.sqrt(along**2 + rest * np.einsum("ij,ij->i", p, p))) / rest
            x = p + length[:, None] * q
            return z.new_tensor(x) if is_tensor(z) else x.astype(z.dtype)

        return restored
