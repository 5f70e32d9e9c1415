"""Mean cosine and drift of the whole maps of a convolution, one row for each image.

Rows are too wide for a scan, whose statistics grow with the square of the width. What the study needs follows from sums
of rows and of unit rows, which are kept for groups of images so that intervals follow too (jackknife over groups).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isotrope.errors import InputError
from isotrope.studies.verdict import LEVEL

if TYPE_CHECKING:
    from isotrope.layers import Layer
    from isotrope.sources.source import Source

#: Groups of images for intervals.
_GROUPS = 20


@dataclass
class _Sums:
    """Sums over the images of each group: their number, rows, unit rows, and squared lengths."""

    count: NDArray[np.int64]
    rows: NDArray[np.float64]
    units: NDArray[np.float64]
    squares: float = 0.0

    @classmethod
    def empty(cls, width: int) -> _Sums:
        return cls(np.zeros(_GROUPS, dtype=np.int64), np.zeros((_GROUPS, width)), np.zeros((_GROUPS, width)))

    def add(self, number: int, row: NDArray[np.float64]) -> None:
        norm = float(np.linalg.norm(row))
        if not norm or not math.isfinite(norm):
            return
        group = number % _GROUPS
        self.count[group] += 1
        self.rows[group] += row
        self.units[group] += row / norm
        self.squares += norm**2


def measure_whole_maps(source: Source) -> list[dict[str, Any]]:
    """Measure each layer of a model of images whose row is the whole map of an image.

    Args:
        source: the places of the maps, without a pooling.

    Returns:
        A record for each layer: mean cosine with its 95 % interval, norm of the mean, its share, and root mean square
        of the norms.
    """
    sums: dict[Layer, _Sums] = {}
    for layer, number, row in _iterate_images(source):
        if layer not in sums:
            sums[layer] = _Sums.empty(len(row))
        if sums[layer].rows.shape[1] != len(row):
            raise InputError("whole maps can be compared for images of one size only; resize them, or use places.")
        sums[layer].add(number, row)
    return [{"layer": source.layer_names.get(layer, str(layer))} | _measure(sums[layer]) for layer in source.layers]


def _iterate_images(source: Source) -> Iterator[tuple[Layer, int, NDArray[np.float64]]]:
    """The map of each layer and image as one row; the order of its places does not matter to a cosine."""
    numbers: dict[int, int] = {}
    for batch in source.batches():
        for sequence in dict.fromkeys(np.asarray(batch.rows.sequence).tolist()):
            number = numbers.setdefault(sequence, len(numbers))
            mine = np.asarray(batch.rows.sequence) == sequence
            for layer, rows in batch.layers.items():
                yield layer, number, rows.numpy()[mine].astype(np.float64).ravel()


def _measure(sums: _Sums) -> dict[str, float]:
    n = int(sums.count.sum())
    whole = sums.units.sum(axis=0)
    cosine = _mean_cosine(whole, n)
    groups = np.flatnonzero(sums.count)
    without = np.array([_mean_cosine(whole - sums.units[g], n - int(sums.count[g])) for g in groups])
    count = len(groups)
    half = math.nan
    if count > 1:
        error = math.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
        half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    drift, energy = float(np.linalg.norm(sums.rows.sum(axis=0) / max(n, 1))), sums.squares / max(n, 1)
    return {
        "mean_cosine": cosine,
        "low": cosine - half,
        "high": cosine + half,
        "drift_norm": drift,
        "drift_share": drift**2 / energy if energy else math.nan,
        "rms_norm": math.sqrt(energy),
        "centred_mean_cosine": math.nan,
    }


def _mean_cosine(units: NDArray[np.float64], n: int) -> float:
    """Over all pairs of different rows, from the sum of their unit rows."""
    return float((units @ units - n) / (n * (n - 1))) if n > 1 else math.nan
