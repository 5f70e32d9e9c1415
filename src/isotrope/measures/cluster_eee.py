"""How unevenly the points spread within each cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool
from isotrope.errors import Undefined
from isotrope.measures.eee import enrichment
from isotrope.measures.record import add_cells_measures
from isotrope.quantization.cells import Cells
from isotrope.statistics.tridiagonal import eigenvalues

#: A spread below this share of the rows' length is rounding.
_SAME = 1e-24


def _of_cell(rows: NDArray[np.float64]) -> float | None:
    """`eee` of the distinct rows of a cell, (m, d); None where there are fewer than two."""
    n, d = rows.shape
    if n < 2:
        return None
    centred = rows - rows.mean(axis=0)
    if not np.einsum("ij,ij->", centred, centred) > _SAME * np.einsum("ij,ij->", rows, rows):
        return None
    small = centred @ centred.T if n <= d else centred.T @ centred
    return enrichment(np.maximum(eigenvalues(small), 0.0))


def _values(c: Cells) -> list[float]:
    """`eee` of every cell of every codebook that has two different rows."""
    with open_pool() as pool:
        found = list(pool.map(lambda at: _of_cell(c.points.rows[at]), c.distinct()))
    return [value for value in found if value is not None]


def _within(c: Cells) -> float:
    """Mean `eee` over the cells that have two different rows or more."""
    values = _values(c)
    if not values:
        raise Undefined("no cell holds two different rows")
    return float(np.mean(values))


def _note(c: Cells) -> str:
    codebooks, size, _ = c.quantized.codebooks.shape
    kept = sum(len(at) > 1 for at in c.distinct())
    return f"{codebooks * size - kept} cells with fewer than two different rows left out; {c.describe()}"


add_cells_measures(
    "cluster_eee",
    _within,
    title="Eigenvalue early enrichment within cells",
    says="How much of each cell's variance its first directions take, on average: 0 evenly shared, near 1 all in one.",
    range=(0.0, 1.0),
    note=_note,
    formula="mean eee of the distinct rows of each cell with at least two, over all cells of all codebooks",
    paper="Marbut, Chandler and Wheeler (latent geometry), Eq. 7",
    blind=(
        "Cells of few rows have a large eee whatever the space: it depends on the points per cell, so on n, and its "
        "interval is about its value at this n, given the trained codebooks."
    ),
)
