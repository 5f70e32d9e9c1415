"""Points in the plane: a layer's sampled rows as they are and repaired, by principal components and by t-SNE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.projections import project_tsne
from isotrope.repairs import SoftDecay
from isotrope.repairs.softdecay import soft_decay
from isotrope.report.directions import Directions

Points = NDArray[np.float32]

#: Rows that t-SNE places, which takes seconds for these and many minutes for all.
MOST_PLACED = 3_000


def bent(found: Directions) -> tuple[SoftDecay, NDArray[np.float64]]:
    """SoftDecay with its defaults, and its gains, (s,)."""
    repair = SoftDecay()
    values = soft_decay(found.singular, repair.alpha, repair.form)
    return repair, found.singular[0] / values[0] * values / found.singular


def planes(found: Directions, rows: NDArray[Any], *, repaired: bool) -> dict[str, Points]:
    """The rows, (n, d), on the plane of their widest spread, (n, 2), by what was done to them before."""
    ways = {"none": found.drawn()}
    if repaired:
        ways |= {"softdecay": found.drawn_bent(bent(found)[1]), "whitening": found.drawn_whitened()}
    wide = rows.astype(np.float64, copy=False)
    return {name: (wide @ weight - shift).astype(np.float32) for name, (weight, shift) in ways.items()}


def placed(found: Directions, rows: NDArray[Any], *, seed: int) -> dict[str, Points]:
    """The first rows placed by t-SNE so that neighbours by cosine stay neighbours, (n, 2), by what was done to them."""
    wide = rows[:MOST_PLACED].astype(np.float64)
    along = wide @ found.turn
    whitened = (wide - found.mean) @ (found.axes / np.sqrt(found.variances))
    ways = {"none": wide, "softdecay": along * bent(found)[1], "whitening": whitened}
    return {name: project_tsne(image, seed) for name, image in ways.items()}
