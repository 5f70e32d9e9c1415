"""Maps of rows that are divided by their length: before the map, after it, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.compute.arrays import check_finite, compute_lengths, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map

#: Where rows are divided by their length.
WAYS = ("none", "input", "output", "both")


def check_way(way: str) -> None:
    """Check that a way to divide rows is one of `WAYS`."""
    if way not in WAYS:
        raise InputError(f"normalize is {way!r}, expected one of {', '.join(WAYS)}.")


def combine_ways(recorded: str, requested: str | None) -> str:
    """The way that is recorded and the one that is requested together.

    Args:
        recorded: one of `WAYS`.
        requested: one of `WAYS`; "none" switches both off, None asks for nothing.

    Examples:
        >>> combine_ways("output", "input"), combine_ways("output", None), combine_ways("both", "none")
        ('both', 'output', 'none')
    """
    if requested is None or recorded == requested:
        return recorded
    check_way(requested)
    return requested if requested == "none" or recorded == "none" else "both"


@dataclass(frozen=True, eq=False)
class NormalizedMap:
    """A map of rows, (n, d) -> (n, k), with rows divided by their length before it or after it; zeros stay zeros.

    Args:
        map: what is done to rows.
        normalize: one of `WAYS`.
        keeps_length: whether images are multiplied by the length of their row, which is then never lost.

    Examples:
        >>> NormalizedMap(Affine([0.0, 0.0], np.diag([3.0, 8.0])), "output")(np.array([[1.0, 0.5]])).tolist()
        [[0.6, 0.8]]
        >>> moved = NormalizedMap(Affine([0.5, 0.0], np.eye(2)), "input", keeps_length=True)
        >>> moved(np.array([[6.0, 8.0]])).round(9).tolist()
        [[1.0, 8.0]]
        >>> moved.inverse()(np.array([[1.0, 8.0]])).round(9).tolist()
        [[6.0, 8.0]]
    """

    map: Map
    normalize: str
    keeps_length: bool = False

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
        if self.normalize in ("output", "both"):
            image = to_unit_rows(image)
        if not self.keeps_length:
            return image
        x = to_matrix(rows)
        image = image * compute_lengths(x)
        return image if is_tensor(x) else image.astype(x.dtype)

    def inverse(self) -> Callable[[Any], Any]:
        """What brings rows back: those whose length is kept, and unit rows; other lengths cannot be brought back."""
        if self.normalize == "none":
            return self.map.inverse()
        if not isinstance(self.map, Affine) or (self.normalize == "input" and not self.keeps_length):
            raise InputError("rows were divided by their length, which cannot be brought back: there is no inverse.")
        return _invert(self.map, keeps_length=self.keeps_length)


def _invert(affine: Affine, *, keeps_length: bool) -> Callable[[Any], Any]:
    """The inverse of a map A of unit rows whose images are divided by their length, or else of ‖x‖·A(x/‖x‖)."""
    back = affine.inverse()
    linear = Affine(np.zeros(back.width), back.weight)
    q = back(np.zeros((1, back.width)))[0]
    rest = 1.0 - float(q @ q)
    if not rest > 0:
        raise InputError("all rows point the same way, so their lengths cannot be brought back.")

    def restore(images: Any) -> Any:
        """A row's direction is t·p + q with p = z W⁻¹, q = A⁻¹(0) and an unknown t > 0, 1/‖x‖ where that is kept.

        Its length is 1 for one such t where ‖q‖ < 1.
        """
        given = to_matrix(images)
        p = to_float64(linear(given))
        along = p @ q
        # The root without a difference of nearly equal numbers: t is rest over it.
        root = along + np.sqrt(along**2 + rest * np.einsum("ij,ij->i", p, p))
        if keeps_length:
            rows = p + (root / rest)[:, None] * q
        else:
            rows = (rest / np.maximum(root, np.finfo(np.float64).tiny))[:, None] * p + q
        return given.new_tensor(rows) if is_tensor(given) else rows.astype(given.dtype)

    return restore
