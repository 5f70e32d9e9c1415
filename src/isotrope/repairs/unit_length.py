"""Maps of rows that are divided by their length: before an affine map, after any map, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_finite, compute_lengths, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map

#: Where rows are divided by their length.
WAYS = ("none", "input", "output", "both")

_NO_INVERSE = "rows were divided by their length, which cannot be brought back: there is no inverse."


def check_way(way: str) -> None:
    """Refuse what is none of `WAYS`."""
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

    Examples:
        >>> NormalizedMap(Affine([0.0, 0.0], np.diag([3.0, 8.0])), "output")(np.array([[1.0, 0.5]])).tolist()
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
            raise InputError(_NO_INVERSE)
        back = self.map.inverse()
        q, rest = _find_origin(back)

        def restore(images: Any) -> Any:
            """x = t·p + q with p = z W⁻¹ and an unknown t > 0; ‖x‖ = 1 has one such t where ‖q‖ < 1."""
            p = _map_linearly(back, images)
            along, squares = p @ q, np.einsum("ij,ij->i", p, p)
            # The root without a difference of nearly equal numbers.
            t = rest / np.maximum(along + np.sqrt(along**2 + rest * squares), np.finfo(np.float64).tiny)
            return _convert_like(t[:, None] * p + q, images)

        return restore


@dataclass(frozen=True, eq=False)
class UnitRowMap:
    """x -> A(x/‖x‖), or ‖x‖·A(x/‖x‖) where rows keep their length, (n, d) -> (n, k).

    Args:
        affine: the map A of rows' directions. The whole is not affine in the rows.
        keep_length: whether the image is multiplied by the row's length.

    Examples:
        >>> moved = UnitRowMap(Affine([0.5, 0.0], np.eye(2)), keep_length=True)
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
            raise InputError(_NO_INVERSE)
        back = self.affine.inverse()
        q, rest = _find_origin(back)

        def restore(images: Any) -> Any:
            """z = ‖x‖·A(u), so x = p + ‖x‖·q with p = z W⁻¹; squared, that has one root ‖x‖ above zero."""
            p = _map_linearly(back, images)
            along = p @ q
            length = (along + np.sqrt(along**2 + rest * np.einsum("ij,ij->i", p, p))) / rest
            return _convert_like(p + length[:, None] * q, images)

        return restore


def _find_origin(back: Affine) -> tuple[NDArray[np.float64], float]:
    """q = A⁻¹(0), (d,), and 1 − ‖q‖² for the inverse of a map A; refused where that is not above zero."""
    q = back(np.zeros((1, back.width)))[0]
    rest = 1.0 - float(q @ q)
    if not rest > 0:
        raise InputError("all rows point the same way, so their lengths cannot be brought back.")
    return q, rest


def _map_linearly(back: Affine, images: Any) -> NDArray[np.float64]:
    """z W⁻¹ of images z, (n, k) -> (n, d), in float64."""
    return to_float64(Affine(np.zeros(back.width), back.weight)(to_matrix(images)))


def _convert_like(rows: NDArray[np.float64], images: Any) -> Any:
    """Rows as numpy or torch, in the float type of the images that they come from."""
    like = to_matrix(images)
    return like.new_tensor(rows) if is_tensor(like) else rows.astype(like.dtype)
