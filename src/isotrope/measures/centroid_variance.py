"""How evenly the centres of the cells are spaced."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, add_cells_measures
from isotrope.quantization.cells import Cells


def _nearest(codebook: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distance from each centre to the nearest other one, (k, d) -> (k,)."""
    found = np.empty(len(codebook))
    for i, centre in enumerate(codebook):
        apart = codebook - centre
        squares = compute_squared_lengths(apart)
        squares[i] = np.inf
        found[i] = squares.min()
    return found


def _spacing(c: Cells, squared: bool = False, ddof: int = 1) -> float:
    """Variance of the distances to the nearest centre, over the largest of them."""
    distances = np.concatenate([_nearest(book) for book in c.quantized.codebooks])
    distances = distances if squared else np.sqrt(distances)
    if not distances.max() > 0:
        raise Undefined("all centres are the same, so their distances have no scale")
    return float(np.var(distances / distances.max(), ddof=ddof))


def _range(n: int, d: int, codebooks: int, size: int, **_: object) -> Bounds:
    """Half of the distances 0 and half of them 1 vary most."""
    count = codebooks * size
    return (0.0, 0.25 * count / (count - 1))


add_cells_measures(
    "centroid_variance",
    _spacing,
    title="Variance of the centres' spacing",
    says="How unevenly the centres of the cells are spaced: 0 evenly.",
    range=_range,
    estimate=False,
    formula="variance (ddof 1) of ρ/max ρ over all M·k centres, ρ the distance to the nearest of the same codebook",
    paper="Marbut, Chandler and Wheeler (latent geometry), Eq. 6",
    blind=(
        "The points themselves: it sees the centres alone, at this n of training points, and given the trained "
        "codebooks it has no interval."
    ),
    wrong="The authors' code takes squared distances and divides by M·k (variant published).",
    variants={"published": lambda c: _spacing(c, squared=True, ddof=0)},
)
