"""Which coordinates carry a layer's norm, and its common direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.statistics import Moments


def coordinates(m: Moments) -> dict[str, NDArray[np.float64]]:
    """Mean, standard deviation, share of the squared norm and share of the mean cosine of each coordinate, (d,) each.

    The shares of the squared norm are E x_j² / E‖x‖², those of the mean cosine (mean u_j)² / ‖mean u‖², u = x/‖x‖; both
    add up to 1. Papers: Timkey and van Schijndel 2021; Kovaleva et al. 2021.

    >>> from isotrope.statistics import block
    >>> rows = np.array([[3.0, 4.0], [3.0, -4.0]])
    >>> {name: values.tolist() for name, values in coordinates(Moments.of(block(rows))).items()}["norm_share"]
    [0.36, 0.64]
    """
    variance = np.maximum(np.diagonal(m.scatter), 0.0) / max(m.n, 1)
    squares = m.mean**2 + variance
    common = m.unit_mean**2
    return {
        "mean": m.mean,
        "deviation": np.sqrt(variance),
        "norm_share": squares / (squares.sum() or 1.0),
        "cosine_share": common / (common.sum() or 1.0),
    }
