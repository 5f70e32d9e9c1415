"""The affine map of a repair in the form that other libraries hold it: y = x A + c, in float32."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs import Affine, Repair
from isotrope.repairs.linear import LinearRepair

#: Rounding that goes without saying, as a share of a row's length.
ALLOWED = 1e-5

#: The largest error of thousands of rows over what one product loses on average, as measured.
_WORST = 8


def resolve_affine(repair: Repair | Affine) -> Affine:
    """The one affine map of the rows that a repair is; refused where it is another.

    >>> resolve_affine(Affine([0.0, 0.0], np.eye(2)))
    <Affine from 2 to 2 columns>
    """
    if isinstance(repair, Affine):
        return repair
    if not isinstance(repair, Repair):
        raise InputError(f"got a {type(repair).__name__}, expected a fitted repair or an Affine.")
    found = repair.map_
    if isinstance(found, Affine):
        return found
    raise InputError(
        f"{repair!r} is not one affine map x -> (x − b) W of the rows, and only those can be exported; "
        "save it with save and apply it with transform."
    )


def find_divisions(repair: Repair | Affine) -> tuple[bool, bool]:
    """Whether a repair divides rows by their length before its map, and after it; a bare map does neither.

    >>> find_divisions(Affine([0.0, 0.0], np.eye(2)))
    (False, False)
    """
    way = repair.normalizes_ if isinstance(repair, Repair) else "none"
    return way in ("input", "both"), way in ("output", "both")


def compute_weight_and_bias(repair: Repair | Affine) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A transposed, (k, d), and c, (k,), as layers of networks hold them; warns where that costs digits in float32.

    >>> weight, bias = compute_weight_and_bias(Affine([1.0, 0.0], [[2.0], [3.0]]))
    >>> weight.tolist(), bias.tolist()
    ([[2.0, 3.0]], [-2.0])
    """
    affine = resolve_affine(repair)
    lost = estimate_rounding(repair) if isinstance(repair, LinearRepair) else 0.0
    if lost > ALLOWED:
        warnings.warn(
            f"applied in float32 as one product and a bias, {repair!r} shows rounding of about {lost:.0e} of a row's "
            "length, because of a large mean or large gains; the exports 'onnx' and 'numpy' take the mean away first",
            stacklevel=3,
        )
    weight = np.ascontiguousarray(affine.weight.T, dtype=np.float32)
    bias = affine.offset - affine.shift @ affine.weight  # in float64: only the sum is rounded
    return weight, bias.astype(np.float32)


def compute_shift_weight_offset(
    repair: Repair | Affine,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """The map as (x − shift) weight + offset, (d,), (d, k) and (k,), which loses no digits beside a large mean.

    The shift is the mean of what the repair was fitted on, also where it does not centre; the offset makes up for that,
    and for the rounding of the shift itself.

    >>> shift, weight, offset = compute_shift_weight_offset(Affine([1.0, 0.0], [[2.0], [3.0]]))
    >>> shift.tolist(), weight.tolist(), offset.tolist()
    ([1.0, 0.0], [[2.0], [3.0]], [0.0])
    """
    affine = resolve_affine(repair)
    mean = repair.moments_.mean if isinstance(repair, LinearRepair) else affine.shift
    shift = mean.astype(np.float32)
    offset = (shift - affine.shift) @ affine.weight + affine.offset
    return shift, affine.weight.astype(np.float32), offset.astype(np.float32)


def estimate_rounding(repair: LinearRepair) -> float:
    """How far x A + c is off in float32 at worst, about, for rows as it was fitted on, over a repaired row's length.

    Each product of a sum is rounded by its own size, and those of a large mean are large where their sum is not.

    >>> from isotrope import Centering
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> estimate_rounding(Centering().fit(rows)) < 1e-6 < 1e-4 < estimate_rounding(Centering().fit(rows + 1e4))
    True
    """
    m, affine = repair.moments_, resolve_affine(repair)
    if m.n == 0:  # SoftDecay of nothing but zeros
        return 0.0
    squares = np.diagonal(m.scatter) / m.n + m.mean**2
    products = np.sqrt((squares @ affine.weight**2).max())
    length = np.sqrt(affine.push(m).energy / m.n)
    sums = np.count_nonzero(affine.weight, axis=0).max() > 1  # centering has none
    return float((_WORST if sums else 1) * np.finfo(np.float32).eps * products / length)
