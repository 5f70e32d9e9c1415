"""Maps of rows to rows, and the one fitted form of every linear repair: x -> (x − b) W + c."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_finite, check_width, is_tensor, to_float64, to_matrix
from isotrope.compute.threads import open_pool, slice_rows
from isotrope.errors import InputError
from isotrope.repairs import persistence as saved
from isotrope.statistics import Moments
from isotrope.statistics.saved_arrays import name_file, require, require_consistent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Rows multiplied at once: large enough for full speed, small enough for constant memory.
_ROWS = 2048


class Map(Protocol):
    """What a fitted repair does to rows, numpy or torch, (n, d) -> (n, k)."""

    @property
    def width(self) -> int:
        """The number of columns d that it takes."""

    @property
    def columns(self) -> int:
        """The number of columns k that it gives."""

    def __call__(self, rows: Any) -> Any:
        """The images of rows; each float type to itself."""

    def inverse(self) -> Callable[[Any], Any]:
        """What brings rows back; refused with a reason where nothing can."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Affine:
    """x -> (x − shift) @ weight + offset, (n, d) -> (n, k).

    Args:
        shift: (d,).
        weight: (d, k).
        offset: (k,), zeros unless given; with it, inverses and compositions are exact too.

    Examples:
        >>> half = Affine([1.0, 1.0], np.eye(2) / 2)
        >>> half(np.array([[3.0, 5.0]])).tolist()
        [[1.0, 2.0]]
        >>> half.then(half.inverse())(np.array([[3.0, 5.0]])).tolist()
        [[3.0, 5.0]]
    """

    shift: Vector
    weight: Matrix
    offset: Vector

    def __init__(self, shift: Any, weight: Any, offset: Any = None) -> None:
        shift, weight = to_float64(shift), to_float64(weight)
        offset = np.zeros(weight.shape[-1]) if offset is None else to_float64(offset)
        if weight.ndim != 2 or shift.shape != weight.shape[:1] or offset.shape != weight.shape[1:]:
            raise InputError(
                f"got a shift of shape {shift.shape}, a weight of shape {weight.shape} and an offset of shape "
                f"{offset.shape}, expected (d,), (d, k) and (k,)."
            )
        for name, array in (("shift", shift), ("weight", weight), ("offset", offset)):
            if not np.isfinite(array).all():
                raise InputError(f"the {name} of an affine map holds NaN or inf, expected numbers.")
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"<Affine from {self.width} to {self.columns} columns>"

    @property
    def width(self) -> int:
        """The number of columns d that it takes."""
        return len(self.weight)

    @property
    def columns(self) -> int:
        """The number of columns k that it gives."""
        return len(self.offset)

    def __call__(self, rows: Any) -> Any:
        """The images of rows, (n, d) -> (n, k): numpy to numpy, torch to torch, each float type to itself."""
        x = to_matrix(rows)
        check_width(x, self.width, "this map")
        if is_tensor(x):
            return self._of_tensor(x) if len(x) else x.new_empty((0, self.columns))
        out = np.empty((len(x), self.columns), dtype=np.float64 if x.dtype.itemsize >= 8 else np.float32)
        parts = slice_rows(len(x), _ROWS)
        with open_pool() if len(parts) > 1 else nullcontext() as pool:
            for _ in (pool.map if pool else map)(lambda part: self._write(x[part], out[part]), parts):
                pass
        return out.astype(x.dtype, copy=False)

    def _write(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            near = x.mean(axis=0, dtype=out.dtype)
        if not np.isfinite(near).all():
            check_finite(x)
            near = np.zeros_like(near)  # numbers so large that their sum is none
        if self._only_moves:
            out[:] = x - (self.shift - self.offset)
        elif out.dtype == np.float64:
            np.matmul(x - self.shift, self.weight, out=out)
            out += self.offset
        else:
            # A common mean far larger than the spread would cost the product digits in float32: it goes by float64.
            np.matmul(x - near, self._narrow_weight, out=out)
            out += ((near.astype(np.float64) - self.shift) @ self.weight + self.offset).astype(np.float32)

    def _of_tensor(self, x: Any) -> Any:
        import torch

        wide = x.float() if x.element_size() < 4 else x
        near = wide.detach().mean(0)
        if not bool(near.isfinite().all()):
            check_finite(x)
        centre = to_float64(near)
        image = torch.as_tensor((centre - self.shift) @ self.weight + self.offset, dtype=wide.dtype, device=x.device)
        weight = torch.as_tensor(self.weight, dtype=wide.dtype, device=x.device)
        return ((wide - near) @ weight + image).to(x.dtype)

    @cached_property
    def _narrow_weight(self) -> NDArray[np.float32]:
        return self.weight.astype(np.float32)

    @cached_property
    def _only_moves(self) -> bool:
        """Whether the weight is the identity, so that no product is needed."""
        return self.width == self.columns and np.array_equal(self.weight, np.eye(self.width))

    def inverse(self) -> Affine:
        """The map that brings rows back; refused where this one loses a direction."""
        return self._inverse

    @cached_property
    def _inverse(self) -> Affine:
        if self.width != self.columns:
            raise InputError(
                f"a map from {self.width} to {self.columns} columns has no inverse: what was dropped cannot come back."
            )
        values = np.linalg.svd(self.weight, compute_uv=False)
        lost = int((values <= self.width * np.finfo(np.float64).eps * values[0]).sum())
        if lost:
            raise InputError(
                f"a map that takes {lost} of {self.width} directions to zero has no inverse: "
                "what was there cannot come back."
            )
        return Affine(self.offset, np.linalg.inv(self.weight), self.shift)

    def then(self, following: Affine) -> Affine:
        """This map and after it another, as one."""
        if following.width != self.columns:
            raise InputError(
                f"a map to {self.columns} columns cannot be followed by one from {following.width}; "
                "expected the same number."
            )
        return Affine(self.shift, self.weight @ following.weight, following(self.offset[None])[0])

    def push(self, moments: Moments) -> Moments:
        """Moments of the images, from the moments of the rows alone.

        Count, mean, scatter and energy are exact. The mean and scatter of unit rows would need each row's new length:
        they are NaN. Rows that were left out as zeros stay left out.

        >>> from isotrope.statistics import prepare_rows
        >>> rows = np.array([[1.0, 2.0], [3.0, 6.0]])
        >>> Affine([0.0, 0.0], np.diag([2.0, 1.0])).push(Moments.of(prepare_rows(rows))).mean.tolist()
        [4.0, 4.0]
        """
        if moments.d != self.width:
            raise InputError(f"got moments of rows of width {moments.d}, expected {self.width}.")
        mean = (moments.mean - self.shift) @ self.weight + self.offset
        scatter = self.weight.T @ moments.scatter @ self.weight
        scatter = (scatter + scatter.T) / 2
        return Moments(
            n=moments.n,
            mean=mean,
            scatter=scatter,
            unit_mean=np.full(self.columns, math.nan),
            unit_scatter=math.nan,
            energy=float(scatter.trace() + moments.n * (mean @ mean)),
            zero=moments.zero,
            nonfinite=moments.nonfinite,
            resolution=moments.resolution,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving and for other libraries."""
        return {"shift": self.shift, "weight": self.weight, "offset": self.offset}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Affine:
        """The map that `arrays` returned."""
        weight = require(arrays, "weight", np.float64, (None, None))
        d, k = weight.shape
        require_consistent(d > 0 and k > 0, f"the saved map is of shape {weight.shape}")
        return cls(require(arrays, "shift", np.float64, (d,)), weight, require(arrays, "offset", np.float64, (k,)))

    def save(self, folder: str | Path, *, fitted_on: Mapping[str, Any] | None = None, overwrite: bool = False) -> None:
        """Write the map into a folder; fitted_on: plain data on where it comes from."""
        facts = {"repair": "affine", "width": self.width, "columns": self.columns, "fitted_on": dict(fitted_on or {})}
        saved.write(folder, facts, self.arrays(), overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Affine:
        """The map that `save` wrote."""
        facts, arrays = saved.read(folder)
        if facts["repair"] != "affine":
            raise InputError(f"{str(folder)!r} holds the repair {facts['repair']!r}; use isotrope.repairs.load_repair.")
        with name_file(Path(folder)):
            return cls.from_arrays(arrays)

    def to_torch(self) -> Any:
        """The same map as a float32 torch `Linear`."""
        import torch

        linear = torch.nn.Linear(self.width, self.columns)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(self.weight.T))
            linear.bias.copy_(torch.from_numpy(self.offset - self.shift @ self.weight))
        return linear
