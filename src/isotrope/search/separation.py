"""Whether a threshold can separate: best scores against the best scores that unrelated documents would reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import genpareto

from isotrope.statistics.pair_cosines import PairCosines

Vector = NDArray[np.float64]

#: Documents of each query that may be related to it, and do not count as background.
_RELATED = 10

#: Fewest documents for an answer, most rows whose best scores are taken, and most cosines that the background is
#: fitted to.
FEWEST_DOCUMENTS, MOST_ROWS, _FITTED = 200, 1_000, 2_000

#: The largest share of pairs that the background is fitted to, and how many times the related ones at least.
_WINDOW, _WIDEST = 0.05, 5.0

#: Overlaps up to which best scores are separate, and up to which they are in part.
_SEPARATE, _PARTLY = 0.1, 0.4


@dataclass(frozen=True)
class Separation:
    """How the best scores compare with the background's maxima.

    Attributes:
        overlap: The chance that the best of all unrelated documents scores as high as the best document of a row. 0.5
            where best documents are nothing but the largest of many random cosines.
        low: Lower end of its 95 % interval over rows.
        high: Upper end.
        best: Median score of the best document.
        background: Median of the best scores that unrelated documents would have.
        documents: How many documents each row is compared with.
        rows: How many rows' best scores were taken.
    """

    overlap: float
    low: float
    high: float
    best: float
    background: float
    documents: int
    rows: int

    @property
    def answer(self) -> str:
        """ "yes", "partly" or "no": whether a threshold separates."""
        return "yes" if self.overlap <= _SEPARATE else "partly" if self.overlap <= _PARTLY else "no"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"separates": self.answer, **vars(self)}


def compare_best(best: Vector, found: PairCosines, documents: int) -> Separation | None:
    """Compare the best scores of held-out rows, (m,), with the maxima of the background over as many documents.

    The background is the tail of random pairs without its far end: up to ten documents of each row may be related to
    it, so that cosines beyond that share are censored, and the tail goes on as it began.

    Args:
        best: cosine of each held-out row with its best document.
        found: cosines of random pairs.
        documents: how many documents each row was compared with.

    Returns:
        The comparison; None with fewer than 200 documents.
    """
    if documents < FEWEST_DOCUMENTS or not len(best):
        return None
    related = _RELATED / documents
    window = max(_WINDOW, _WIDEST * related)
    ordered = np.sort(found.cosines)
    start, end = (float(ordered[math.floor(len(ordered) * (1.0 - share))]) for share in (window, related))
    inside = ordered[(ordered > start) & (ordered < end)] - start
    if end <= start or len(np.unique(inside)) < _RELATED:  # the far end is one value, as with many copies
        return None
    shape, scale = _fit_censored(inside, end - start, related / window)
    shares = window * genpareto.sf(best - start, shape, scale=scale)
    chances = np.where(best > start, (1.0 - shares) ** documents, 0.0)
    error = 1.959964 * float(chances.std(ddof=1)) / math.sqrt(len(best)) if len(best) > 1 else 1.0
    overlap = 1.0 - float(chances.mean())
    median = start + float(genpareto.isf((1.0 - 0.5 ** (1.0 / documents)) / window, shape, scale=scale))
    low, high = max(0.0, overlap - error), min(1.0, overlap + error)
    return Separation(overlap, low, high, float(np.median(best)), min(1.0, median), documents, len(best))


def _fit_censored(inside: Vector, end: float, censored: float) -> tuple[float, float]:
    """Shape and scale of a generalized Pareto distribution of which a share lies at an unknown place beyond an end."""
    values = np.quantile(inside, (np.arange(_FITTED) + 0.5) / _FITTED) if len(inside) > _FITTED else inside
    weight = censored / (1.0 - censored)

    def compute_loss(parameters: Vector) -> float:
        shape, scale = float(parameters[0]), math.exp(float(parameters[1]))
        if not -1.0 <= shape <= 1.0:
            return math.inf
        beyond = float(genpareto.logsf(end, shape, scale=scale))
        seen = float(genpareto.logpdf(values, shape, scale=scale).mean())
        total = -(seen + weight * beyond)
        return total if math.isfinite(total) else 1e300

    begin = np.array([0.0, math.log(float(values.mean()) + weight * end)])
    found = minimize(compute_loss, begin, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-8})
    return float(found.x[0]), math.exp(float(found.x[1]))
