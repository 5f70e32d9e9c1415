"""What is risky in a fitted repair: large gains, directions that are turned round, neighbours lost to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.repair import Repair

#: Above this many times the median gain, a gain is warned of; whitening of real sentence embeddings stays below 10.
LARGE = 100.0

#: Below this share of nearest rows kept, rounding of queries is warned of.
KEPT = 0.95


@dataclass(frozen=True)
class Gains:
    """The gains of a repair's directions.

    Attributes:
        largest: Largest absolute gain.
        median: Median of the absolute gains that are not zero.
        turned: Number of directions with a negative gain.
        left_alone: Number of directions that are too weak for the storage type of the rows.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(99, 3)) * [9.0, 3.0, 1.0]
        >>> from isotrope import Whitening
        >>> found = Gains.of(Whitening().fit(rows))
        >>> (found.turned, found.left_alone, 2 < found.ratio < 4)
        (0, 0, True)
    """

    largest: float
    median: float
    turned: int
    left_alone: int

    @classmethod
    def of(cls, repair: LinearRepair) -> Gains:
        """Of a fitted linear repair."""
        gains = repair.gains_
        sizes = np.abs(gains[gains != 0])
        largest, median = (float(sizes.max()), float(np.median(sizes))) if len(sizes) else (1.0, 1.0)
        return cls(largest, median, int((gains < 0).sum()), repair.left_alone_)

    @property
    def ratio(self) -> float:
        """The largest gain over the median one."""
        return self.largest / self.median

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self) | {"ratio": self.ratio}


def find_risks(repair: Repair) -> list[str]:
    """Find what a user should know before a fitted repair is applied.

    Args:
        repair: A fitted repair.

    Returns:
        Sentences, or an empty list.

    Examples:
        >>> from isotrope import Centering
        >>> find_risks(Centering().fit(np.random.default_rng(0).normal(size=(99, 3))))
        []
    """
    risks = []
    if isinstance(repair, LinearRepair):
        gains = Gains.of(repair)
        if gains.ratio > LARGE:
            risks.append(
                f"The largest gain is {gains.largest:.3g}, {gains.ratio:.3g} times the median: noise in that direction "
                "is amplified as much; a larger tolerance drops weak directions."
            )
        if gains.turned:
            risks.append(
                f"{gains.turned:,} of {len(repair.gains_):,} directions are turned round (gains below zero); "
                "the form 'shifted' turns none."
            )
        if gains.left_alone:
            storage = repair.fitted_on_["storage"]
            count = "1 direction is" if gains.left_alone == 1 else f"{gains.left_alone:,} directions are"
            risks.append(f"{count} too weak for {storage} to resolve, and left alone.")
    rounding = repair.query_rounding_
    if rounding is not None and min(rounding.float16, rounding.int8) < KEPT:
        kind = "float16" if rounding.float16 < KEPT else "int8"
        risks.append(f"Rounding queries to {kind} changes more than {1 - KEPT:.0%} of what they find; keep them wider.")
    return risks
