"""Whether a threshold can separate: best scores against the best scores that unrelated documents would reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: Documents of each row that may be related to it, and the further ones that show how its background falls off.
_RELATED, _FURTHER = 10, 50

#: Fewest documents for an answer, and most rows whose best scores are taken.
FEWEST_DOCUMENTS, MOST_ROWS = 200, 1_000

#: Overlaps up to which best scores are separate, and up to which they are in part.
_SEPARATE, _PARTLY = 0.1, 0.4


@dataclass(frozen=True)
class Separation:
    """How best scores compare with the best scores that unrelated documents would reach.

    Attributes:
        overlap: The chance that the best unrelated document of one row scores as high as the best document of another.
            0.5 or more where best documents are nothing but the largest of many random cosines.
        low: Lower end of its 95 % interval over rows.
        high: Upper end.
        best: Median score of the best document.
        background: Median score that the best unrelated document would reach.
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
        """Whether a threshold separates: "yes", "partly" or "no"."""
        return "yes" if self.overlap <= _SEPARATE else "partly" if self.overlap <= _PARTLY else "no"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"separates": self.answer, **vars(self)}


def compare_best(cosines: Matrix, seed: int = 0) -> Separation | None:
    """Compare the best score of each held-out row with what the best of its unrelated documents would score.

    Up to ten documents may be related to a row. The next fifty show how its scores fall off, and an exponential tail
    (Rényi 1953: j times the distance from the j-th to the next score is on average the same) is continued from them to
    the first place.

    Args:
        cosines: scores of the documents for each held-out row, (m, documents); −∞ for a row's own.
        seed: of the continued tails.

    Returns:
        The comparison; None with fewer than 200 documents.

    Examples:
        >>> compare_best(np.random.default_rng(0).normal(size=(500, 400)) / 8).answer
        'no'
    """
    documents = int(np.isfinite(cosines).sum(axis=1).min()) if cosines.size else 0
    if documents < FEWEST_DOCUMENTS:
        return None
    listed = _RELATED + 1 + _FURTHER
    top = -np.sort(np.partition(-cosines, listed - 1, axis=1)[:, :listed], axis=1)
    places = np.arange(_RELATED + 1, listed)
    scales = (places * -np.diff(top[:, _RELATED:], axis=1)).mean(axis=1)
    steps = np.random.default_rng(seed).exponential(size=(len(top), _RELATED)).max(axis=1)
    unrelated = np.minimum(top[:, _RELATED] + scales * steps, 1.0)
    overlap, error = _compute_overlap(unrelated, top[:, 0])
    low, high = max(0.0, overlap - error), min(1.0, overlap + error)
    medians = float(np.median(top[:, 0])), float(np.median(unrelated))
    return Separation(overlap, low, high, *medians, documents, len(top))


def _compute_overlap(unrelated: Vector, best: Vector) -> tuple[float, float]:
    """The chance that one value is at least as high as another, and half its 95 % interval (DeLong et al. 1988)."""
    n = len(best)
    joint = rankdata(np.concatenate([unrelated, best]))
    # For each value the share of values of the other kind below it, ties counting half.
    above_best = (joint[:n] - rankdata(unrelated)) / n
    above_unrelated = (joint[n:] - rankdata(best)) / n
    variance = (float(above_best.var()) + float(above_unrelated.var())) / n
    return float(above_best.mean()), 1.959964 * math.sqrt(variance)
