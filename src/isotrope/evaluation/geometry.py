"""What the shape of a space says about whether a repair would help it."""

from __future__ import annotations

from dataclasses import dataclass

from isotrope.statistics import Moments

#: Shares of variance in three directions, effective share of directions and mean cosines beyond which spaces gained
#: from a repair; of 60 spaces of three models that were tried, docs/validation.md shows each.
CROWDED, NARROW, DRIFTED = 0.21, 0.11, 0.75

#: A space as even as this, and as little off centre, never gained.
EVEN, CENTRED = 0.2, 0.2


@dataclass(frozen=True)
class Geometry:
    """Few numbers of a space.

    top: share of the variance in its three strongest directions, beyond what three of them have anyway. spread:
    participation ratio (Σλ)²/Σλ² over the number of directions, 1 where all are alike. mean_cosine: between two rows.
    """

    rows: int
    mean_cosine: float
    top: float
    spread: float

    @property
    def uneven(self) -> str | None:
        """How few directions hold the variance, in words, or None where they are enough."""
        if self.top >= CROWDED and (self.spread < 0.5 or self.top >= 0.5):  # of few directions three are many
            return f"three directions hold {self.top:.0%} of the variance"
        if self.spread < NARROW:
            return f"the variance fills {self.spread:.0%} of the directions"
        return None

    @property
    def drifted(self) -> str | None:
        """How far all rows lean to one side, in words, or None where they hardly do."""
        if self.mean_cosine >= DRIFTED:
            return f"two rows have a cosine of {self.mean_cosine:.2f} on average"
        return None

    @property
    def collapsed(self) -> str | None:
        """What is wrong, in words, or None."""
        return self.uneven or self.drifted

    @property
    def healthy(self) -> bool:
        """Whether the space is so even and centred that no repair has ever helped such a one."""
        return self.spread >= EVEN and self.mean_cosine <= CENTRED


def geometry(moments: Moments) -> Geometry:
    """The geometry of rows by their moments.

    >>> import numpy as np
    >>> from isotrope.statistics import block
    >>> geometry(Moments.of(block(np.random.default_rng(0).normal(size=(5000, 16))))).collapsed is None
    True
    """
    values = moments.eigenvalues
    total = float(values.sum())
    directions = min(moments.d, moments.n - 1)
    even = min(1.0, 3 / directions)
    drift = float(moments.unit_mean @ moments.unit_mean)
    return Geometry(
        rows=moments.n,
        mean_cosine=(moments.n * drift - 1) / (moments.n - 1),
        top=(float(values[:3].sum()) / total - even) / (1 - even) if even < 1 else 0.0,
        spread=total**2 / float((values**2).sum()) / directions,
    )
