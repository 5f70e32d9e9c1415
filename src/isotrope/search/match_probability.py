"""The probability that two texts match, given their cosine: isotonic regression, and how well calibrated it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Labels = NDArray[np.bool_]

#: Bins of the expected calibration error, as in Guo et al. 2017.
BINS = 15


def fit_isotonic(values: Vector) -> Vector:
    """The nearest sequence that never falls, in squares, (n,) -> (n,): pool adjacent violators (Ayer et al. 1955).

    >>> fit_isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    sums: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        total, size = value, 1
        while sums and sums[-1] * size >= total * sizes[-1]:
            total, size = total + sums.pop(), size + sizes.pop()
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(sums) / np.array(sizes), sizes) if sums else np.empty(0)


def fit_probability(scores: Vector, labels: Labels) -> tuple[Vector, Vector]:
    """Points of a curve from scores to the probability of a match, both rising; straight lines between the points.

    >>> [points.tolist() for points in fit_probability(np.array([0.1, 0.2, 0.3]), np.array([False, True, True]))]
    [[0.1, 0.2, 0.3], [0.0, 1.0, 1.0]]
    """
    distinct, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    means = np.bincount(which, labels) / counts
    # Scores that occur several times count as often.
    fitted = fit_isotonic(np.repeat(means, counts))[np.cumsum(counts) - 1]
    changes = np.flatnonzero(np.diff(fitted) != 0.0)
    kept = np.unique(np.concatenate([[0], changes, changes + 1, [len(distinct) - 1]]))
    return distinct[kept], fitted[kept]


def compute_calibration_error(probabilities: Any, labels: Labels, bins: int = BINS) -> float:
    """The expected calibration error: mean distance of probability and share of matches over equally wide bins.

    References:
        Guo et al. 2017, arXiv:1706.04599

    >>> compute_calibration_error([0.9, 0.9, 0.1, 0.1], np.array([True, True, False, False]))
    0.1
    """
    values = np.clip(np.asarray(probabilities, dtype=np.float64), 0.0, 1.0)
    which = np.minimum((values * bins).astype(np.int64), bins - 1)
    away = np.bincount(which, values - labels, bins)
    return round(float(np.abs(away).sum() / len(values)), 12)


def compute_crossed_error(scores: Vector, labels: Labels, part: NDArray[np.bool_]) -> float:
    """The expected calibration error of probabilities that are fitted to one part and applied to the other."""
    predicted = np.empty(len(scores))
    for here in (part, ~part):
        predicted[here] = np.interp(scores[here], *fit_probability(scores[~here], labels[~here]))
    return compute_calibration_error(predicted, labels)
