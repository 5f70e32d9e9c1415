"""The affine map of a repair in the form that other libraries hold it: y = x A + c, in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.repairs import Affine, Repair


def affine_of(repair: Repair | Affine) -> Affine:
    """The one affine map of the rows that a repair is; refused where it is another.

    >>> affine_of(Affine([0.0, 0.0], np.eye(2)))
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


def weight_and_bias(affine: Affine) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A transposed, (k, d), and c, (k,), as layers of networks hold them.

    >>> weight, bias = weight_and_bias(Affine([1.0, 0.0], [[2.0], [3.0]]))
    >>> weight.tolist(), bias.tolist()
    ([[2.0, 3.0]], [-2.0])
    """
    weight = np.ascontiguousarray(affine.weight.T, dtype=np.float32)
    bias = affine.offset - affine.shift @ affine.weight  # in float64: only the sum is rounded
    return weight, bias.astype(np.float32)


def refuse_existing(path: str | Path, overwrite: bool) -> None:
    """Refuse to write over what is there, unless that is asked."""
    if Path(path).exists() and not overwrite:
        raise StoreError(f"{str(path)!r} is there already; choose another name, or say overwrite=True.")
    if Path(path).is_dir():
        raise StoreError(f"{str(path)!r} is a folder; give the name of a file.")
