"""What the shape of a space says about whether a repair would help it, by the table of thresholds."""

from __future__ import annotations

from dataclasses import dataclass

from isotrope.measures import get
from isotrope.readings.null import draw_isotropic_moments
from isotrope.statistics import Moments
from isotrope.verdict.thresholds import REPAIRABLE, Threshold, find_troubles


@dataclass(frozen=True)
class Geometry:
    """Few numbers of a space.

    mean_cosine: between two rows. isoscore_share: IsoScore over that of isotropic rows of the same number and width.
    top: share of the variance in its three strongest directions, beyond what three of them have anyway. spread:
    participation ratio (Σλ)²/Σλ² over the number of directions, 1 where all are alike.
    """

    rows: int
    mean_cosine: float
    isoscore_share: float
    top: float
    spread: float

    @property
    def troubles(self) -> list[Threshold]:
        """The words of the table that apply, the worst first."""
        return find_troubles({"mean_cosine": self.mean_cosine, "isoscore_share": self.isoscore_share})

    @property
    def uneven(self) -> bool:
        """Whether few directions carry most of the spread."""
        return any(t.word == "few directions" for t in self.troubles)

    @property
    def repairable(self) -> str | None:
        """What is wrong, in words, where spaces like this one gained from a repair in every case; else None."""
        found = [t.word for t in self.troubles if t.word in REPAIRABLE]
        said = {
            "collapsed": f"two rows have a cosine of {self.mean_cosine:.2f} on average (collapsed)",
            "few directions": f"IsoScore is {self.isoscore_share:.0%} of what isotropic rows give (few directions)",
        }
        return " and ".join(said[word] for word in found) or None

    @property
    def healthy(self) -> bool:
        """Whether no word of the table applies; no repair has ever helped such a space."""
        return not self.troubles


def geometry(moments: Moments) -> Geometry:
    """The geometry of rows by their moments.

    >>> import numpy as np
    >>> from isotrope.statistics import block
    >>> geometry(Moments.of(block(np.random.default_rng(0).normal(size=(5000, 16))))).healthy
    True
    """
    values = moments.eigenvalues
    total = float(values.sum())
    directions = min(moments.d, moments.n - 1)
    even = min(1.0, 3 / directions)
    isoscore = get("isoscore")
    return Geometry(
        rows=moments.n,
        mean_cosine=get("mean_cosine")(moments),
        isoscore_share=isoscore(moments) / isoscore(draw_isotropic_moments(moments.n, moments.d)),
        top=(float(values[:3].sum()) / total - even) / (1 - even) if even < 1 else 0.0,
        spread=total**2 / float((values**2).sum()) / directions,
    )
