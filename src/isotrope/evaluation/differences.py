"""The differences of an evaluation as rows of a table: points, intervals, and p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isotrope.evaluation.significance import Compared, corrected


@dataclass(frozen=True, slots=True)
class PointDifference:
    """A repair's score less that of another, in points (per cent), with its 95 % interval and p-values.

    against: the other, "none" for no repair. p_corrected: after Holm, for all differences of the evaluation.
    significant: whether that is below 0.05.
    """

    set: str
    metric: str
    repair: str
    against: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    significant: bool
    n: int
    reason: str | None = None


def point_differences(found: Mapping[str, Mapping[str, Mapping[str, Compared]]]) -> list[PointDifference]:
    """All differences of an evaluation, their p-values corrected for their number.

    found: by what they are to, by set and by metric.
    """
    labels, values = [], []
    for against, by_set in found.items():
        for name, by_metric in by_set.items():
            for metric, compared in by_metric.items():
                for repair, difference in compared.differences.items():
                    labels.append((name, metric, repair, against))
                    values.append(difference)
    return [
        PointDifference(
            *label, 100 * d.value, 100 * d.low, 100 * d.high, d.p, d.corrected, d.significant, d.n, d.reason
        )
        for label, d in zip(labels, corrected(values), strict=True)
    ]
