"""Geometry of a space: whether a repair would help it by the table of thresholds, and the neighbours it would keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from isotrope.compute.arrays import to_float64, to_unit_rows
from isotrope.measures import get
from isotrope.readings.null import draw_isotropic_moments
from isotrope.repairs.query_rounding import NEAREST, compute_kept_share, find_nearest
from isotrope.statistics import Moments
from isotrope.verdict.thresholds import REPAIRABLE, Threshold, find_troubles

#: The maximum number of rows whose neighbours are compared.
_MOST_ROWS = 2_000


@dataclass(frozen=True)
class Geometry:
    """A few numbers of a space.

    mean_cosine: of two rows. isoscore_share: IsoScore divided by that of isotropic rows of the same number and width.
    top: share of the variance in the three strongest directions, beyond their share in an isotropic space. spread:
    participation ratio (Σλ)²/Σλ² divided by the number of directions, 1 where all are equal.
    """

    rows: int
    mean_cosine: float
    isoscore_share: float
    top: float
    spread: float

    @property
    def troubles(self) -> list[Threshold]:
        """The thresholds that apply, the worst first."""
        return find_troubles({"mean_cosine": self.mean_cosine, "isoscore_share": self.isoscore_share})

    @property
    def uneven(self) -> bool:
        """Whether few directions have most of the variance."""
        return any(t.word == "few directions" for t in self.troubles)

    @property
    def repairable(self) -> str | None:
        """What is wrong, in words, where every such space in the validation gained from a repair; else None."""
        found = [t.word for t in self.troubles if t.word in REPAIRABLE]
        words = {
            "collapsed": f"two rows have a cosine of {self.mean_cosine:.2f} on average (collapsed)",
            "few directions": f"IsoScore is {self.isoscore_share:.0%} of what isotropic rows give (few directions)",
        }
        return " and ".join(words[word] for word in found) or None

    @property
    def healthy(self) -> bool:
        """Whether no threshold applies; no repair helped such a space in the validation."""
        return not self.troubles


def compute_geometry(moments: Moments) -> Geometry:
    """Compute the geometry of rows from their moments.

    >>> import numpy as np
    >>> from isotrope.statistics import prepare_rows
    >>> compute_geometry(Moments.of(prepare_rows(np.random.default_rng(0).normal(size=(5000, 16))))).healthy
    True
    """
    values = moments.eigenvalues
    total = float(values.sum())
    directions = min(moments.d, moments.n - 1)
    isotropic_top = min(1.0, 3 / directions)
    isoscore = get("isoscore")
    return Geometry(
        rows=moments.n,
        mean_cosine=get("mean_cosine")(moments),
        isoscore_share=isoscore(moments) / isoscore(draw_isotropic_moments(moments.n, moments.d)),
        top=(float(values[:3].sum()) / total - isotropic_top) / (1 - isotropic_top) if isotropic_top < 1 else 0.0,
        spread=total**2 / float((values**2).sum()) / directions,
    )


def compute_neighbours_kept(before: NDArray[Any], after: NDArray[Any]) -> float:
    """Compute the share of each row's ten nearest rows by cosine that a repair keeps, (n, d) and (n, k) -> 0 to 1.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> compute_neighbours_kept(x, 3 * x)
    1.0
    >>> compute_neighbours_kept(x, np.random.default_rng(1).normal(size=(100, 4))) < 0.3
    True
    """
    spaces = [to_unit_rows(to_float64(rows[:_MOST_ROWS])) for rows in (before, after)]
    first, second = (find_nearest(rows, rows, min(NEAREST, len(rows) - 1)) for rows in spaces)
    return compute_kept_share(first, second)
