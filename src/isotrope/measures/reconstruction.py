"""How well the cells of a quantizer give the points back: error, its skewness and its spread."""

from __future__ import annotations

import math

import numpy as np

from isotrope.errors import Undefined
from isotrope.measures.record import add_cells_measures
from isotrope.quantization.cells import Cells

_PAPER = "Marbut, Chandler and Wheeler (latent geometry), "
_BLIND = (
    "In which cells the error lies. It depends on n: the codebooks were trained on the same points. "
    "The interval is about its value at this n, given the trained codebooks."
)


def _error(c: Cells) -> float:
    """Σ‖x − x'‖² / Σ‖x‖²."""
    return float(np.sum(c.lengths**2) / np.sum(c.points.rows**2))


add_cells_measures(
    "reconstruction_error",
    _error,
    title="Reconstruction error",
    says="Share of the squared length that the cells do not give back: 0 all is given back.",
    range=(0.0, math.inf),
    formula="Σ‖x − x'‖² / Σ‖x‖²",
    paper=_PAPER + "Eq. 15",
    blind=_BLIND + " A large common mean makes it small: it counts in the length of every row.",
)


def _skewness(c: Cells, corrected: bool = True) -> float:
    """Skewness of ‖x − x'‖ over the points."""
    n = c.n
    apart = c.lengths - c.lengths.mean()
    second = float(np.mean(apart**2))
    if n < 3 or not second > 1e-24 * float(np.mean(c.lengths**2)):
        raise Undefined("all points are given back equally well, so the skewness is undefined")
    plain = float(np.mean(apart**3)) / math.sqrt(second) ** 3
    return plain * math.sqrt(n * (n - 1)) / (n - 2) if corrected else plain


add_cells_measures(
    "reconstruction_skew",
    _skewness,
    title="Skewness of the reconstruction error",
    says="Whether some points lie in tight clusters (below 0: most errors large, some small) or far out (above 0).",
    range=lambda n, d, **_: (-math.sqrt(n), math.sqrt(n)),
    unsure_bias=True,
    formula="bias-corrected skewness of ‖x − x'‖",
    paper=_PAPER + "Eq. 5",
    blind=_BLIND,
    wrong="The authors' code leaves the bias in (variant published).",
    variants={"published": lambda c: _skewness(c, corrected=False)},
)


def _quartiles(c: Cells) -> float:
    """75th minus 25th percentile of ‖x − x'‖ over its largest."""
    largest = float(c.lengths.max(initial=0.0))
    if largest == 0.0:
        raise Undefined("every point is given back exactly, so there is no error to spread")
    low, high = np.percentile(c.lengths / largest, [25, 75])
    return float(high - low)


add_cells_measures(
    "reconstruction_iqr",
    _quartiles,
    title="Quartile range of the reconstruction error",
    says="How unequally well the points are given back: 0 all alike, toward 1 some well and some badly.",
    range=(0.0, 1.0),
    unsure_bias=True,
    formula="75th minus 25th percentile of ‖x − x'‖ / max ‖x − x'‖",
    paper=_PAPER + "appendix A.3",
    blind=_BLIND + " One far point makes it small: it sets the scale.",
)
