"""How alike random rows are, how alike nearest neighbours are, and the cosines that few random pairs reach."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Rows on each side of the random pairs; up to twice as many rows are all compared with each other.
_SIDE = 2_048

#: Bins of the histogram, and the step to which its ends are rounded.
_BINS, _STEP = 80, 0.05

#: Rates of false accepts that cut-offs are suggested for, and pairs beyond a cut-off that it needs.
_RATES, _FEWEST_BEYOND = (1e-2, 1e-3, 1e-4), 100


class CutOff(NamedTuple):
    """A cosine that a share of random pairs reaches. beyond: how many pairs do."""

    rate: float
    cosine: float
    beyond: int


def compute_background(unit: NDArray[np.float64], seed: int = 0) -> NDArray[np.float32]:
    """Cosines of random pairs of different rows: of unit rows (n, d), all pairs, or some 4 million of many rows.

    >>> compute_background(np.eye(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    n = len(unit)
    if n <= 2 * _SIDE:
        rows = unit.astype(np.float32)
        return np.asarray((rows @ rows.T)[np.triu_indices(n, 1)])
    chosen = np.random.default_rng(seed).permutation(n)[: 2 * _SIDE]
    one, other = (unit[np.sort(part)].astype(np.float32) for part in (chosen[:_SIDE], chosen[_SIDE:]))
    return np.asarray((one @ other.T).ravel())


def suggest_cutoffs(background: NDArray[np.floating[Any]]) -> list[CutOff]:
    """Suggest cut-offs for rates of false accepts, for as small rates as 100 pairs or more lie beyond.

    >>> [(c.rate, round(c.cosine, 3)) for c in suggest_cutoffs(np.linspace(0.0, 1.0, 100_001))]
    [(0.01, 0.99), (0.001, 0.999)]
    """
    made = []
    for rate in _RATES:
        if rate * len(background) >= _FEWEST_BEYOND:
            cosine = float(np.quantile(background, 1.0 - rate, method="higher"))
            made.append(CutOff(rate, cosine, int((background >= cosine).sum())))
    return made


def compute_cosine_table(
    background: NDArray[np.floating[Any]], neighbours: NDArray[np.floating[Any]]
) -> dict[str, Any]:
    """Compute the columns of the table of cosines.

    Of the kinds `background` and `nearest`, a line is a bin from `low` to `high` with its count and share. Of the kind
    `cut-off`, it is a cosine (`low` and `high`) with the pairs of the background that reach it, and their share.

    Args:
        background: Cosines of random pairs.
        neighbours: Cosines of rows to their nearest neighbours.
    """
    edges = _choose_edges(background, neighbours)
    kinds: list[str] = []
    low: list[float] = []
    high: list[float] = []
    counts: list[int] = []
    shares: list[float] = []
    for kind, values in (("background", background), ("nearest", neighbours)):
        found = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        kinds += [kind] * _BINS
        low += edges[:-1].tolist()
        high += edges[1:].tolist()
        counts += found.tolist()
        shares += (found / max(len(values), 1)).tolist()
    for cut in suggest_cutoffs(background):
        kinds.append("cut-off")
        low.append(cut.cosine)
        high.append(cut.cosine)
        counts.append(cut.beyond)
        shares.append(cut.rate)
    return {"kind": kinds, "low": low, "high": high, "count": counts, "share": shares}


def _choose_edges(*parts: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """The ends of the bins, from the smallest to the largest cosine, rounded outward to 0.05."""
    least, most = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    first = max(-1.0, _STEP * math.floor(least / _STEP))
    last = min(1.0, _STEP * math.ceil(most / _STEP))
    return np.linspace(min(first, last - _STEP), last, _BINS + 1)
