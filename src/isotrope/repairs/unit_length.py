"""A fitted repair as it is applied: rows divided by their length before the map, after it, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.compute.arrays import check_finite, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Affine

if TYPE_CHECKING:
    from isotrope.repairs.repair import Map

#: Where rows are divided by their length.
WAYS = ("none", "input", "output", "both")


def refuse_way(way: str) -> None:
    """Refuse what is none of `WAYS`."""
    if way not in WAYS:
        raise InputError(f"normalize is {way!r}, expected one of {', '.join(WAYS)}.")


def combine_ways(recorded: str, asked: str | None) -> str:
    """What is recorded and what is asked for together; "none" switches both off, None asks for nothing.

    >>> combine_ways("output", "input"), combine_ways("output", None), combine_ways("both", "none")
    ('both', 'output', 'none')
    """
    if asked is None or recorded == asked:
        return recorded
    refuse_way(asked)
    return asked if asked == "none" or recorded == "none" else "both"


@dataclass(frozen=True, eq=False)
class Normalized:
    """A map of rows, (n, d) -> (n, k), with rows divided by their length before it or after it; zeros stay zeros.

    normalize: one of `WAYS`.

    >>> Normalized(Affine([0.0, 0.0], np.diag([3.0, 8.0])), "output")(np.array([[1.0, 0.5]])).tolist()
    [[0.6, 0.8]]
    """

    map: Map
    normalize: str

    @property
    def width(self) -> int:
        """The number of columns d that it takes."""
        return self.map.width

    @property
    def columns(self) -> int:
        """The number of columns k that it gives."""
        return self.map.columns

    def prepare(self, rows: Any) -> Any:
        """The rows that the map takes: divided by their length, or as they are."""
        x = to_matrix(rows)
        if self.normalize not in ("input", "both"):
            return x
        check_finite(x)
        return to_unit_rows(x)

    def __call__(self, rows: Any) -> Any:
        """The images of rows; each float type to itself."""
        image = self.map(self.prepare(rows))
        return to_unit_rows(image) if self.normalize in ("output", "both") else image

    def inverse(self) -> Callable[[Any], Any]:
        """What brings rows back; unit rows come back as unit rows, other lengths cannot be brought back."""
        if self.normalize == "none":
            return self.map.inverse()
        if not isinstance(self.map, Affine) or self.normalize == "input":
            raise InputError("rows were divided by their length, which cannot be brought back: there is no inverse.")
        back = self.map.inverse()
        return lambda images: restore_unit_rows(back, images)


def restore_unit_rows(back: Affine, images: Any) -> Any:
    """The rows of length 1 whose images under the inverse of `back` have the directions of rows z, (n, k) -> (n, d).

    x = t·p + q with p = z W⁻¹, q = A⁻¹(0) and an unknown t > 0; ‖x‖ = 1 has one such t where ‖q‖ < 1.
    """
    z = to_matrix(images)
    q = back(np.zeros((1, back.width)))[0]
    rest = 1.0 - float(q @ q)
    if not rest > 0:
        raise InputError("all rows point the same way, so their lengths cannot be brought back.")
    p = to_float64(Affine(np.zeros(back.width), back.weight)(z))
    along, squares = p @ q, np.einsum("ij,ij->i", p, p)
    # The root without a difference of nearly equal numbers.
    t = rest / np.maximum(along + np.sqrt(along**2 + rest * squares), np.finfo(np.float64).tiny)
    x = t[:, None] * p + q
    return z.new_tensor(x) if is_tensor(z) else x.astype(z.dtype)
