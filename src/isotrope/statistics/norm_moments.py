"""Mean and scatter of the lengths of rows, merged centred."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics.saved_arrays import LARGEST, LARGEST_SQUARE, require, require_consistent


class NormMoments(NamedTuple):
    """mean: of ‖x‖. scatter: Σ(‖x‖ − mean)². Both NaN where lengths are not known, as after a map.

    >>> NormMoments.of(np.array([1.0])).merge(NormMoments.of(np.array([3.0])), 1, 1)
    NormMoments(mean=2.0, scatter=2.0)
    """

    mean: float
    scatter: float

    @classmethod
    def of(cls, norms: NDArray[np.float64]) -> NormMoments:
        """Those of some lengths, (n,)."""
        mean = float(norms.mean())
        return cls(mean, float(np.square(norms - mean).sum()))

    def merge(self, other: NormMoments, n: int, more: int) -> NormMoments:
        """Those of n lengths and `more` others together; of n lengths without −more of them where that is negative."""
        total = n + more
        away = other.mean - self.mean
        sign = math.copysign(1.0, more)
        scatter = self.scatter + sign * other.scatter + n * more / total * away**2
        return NormMoments(self.mean + more / total * away, scatter if math.isnan(scatter) else max(0.0, scatter))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NormMoments:
        """What was saved as `norms`; not known where an earlier version saved none."""
        if "norms" not in arrays:
            return UNKNOWN
        found = cls(*require(arrays, "norms", np.float64, (2,), finite=False).tolist())
        require_consistent(
            all(map(math.isnan, found)) or (0 <= found.mean <= LARGEST and 0 <= found.scatter <= LARGEST_SQUARE),
            f"the saved lengths of rows have the mean {found.mean:g} and the scatter {found.scatter:g}",
        )
        return found


#: Of no rows, and of rows whose lengths are not known.
NO_NORMS, UNKNOWN = NormMoments(0.0, 0.0), NormMoments(math.nan, math.nan)
