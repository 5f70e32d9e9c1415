"""The differences of an evaluation as rows of a table: points, intervals, and p-values corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from isotrope.evaluation.significance import Compared, corrected


@dataclass(frozen=True, slots=True)
class PointDifference:
    """A repair's score less that without one, or another's, in points, with its 95 % interval and p-values.

    p_corrected: after Holm, for all differences of the evaluation. significant: whether that is below 0.05.
    """

    set: str
    metric: str
    repair: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    significant: bool
    n: int
    reason: str | None = None


def point_differences(found: Mapping[str, Mapping[str, Compared]]) -> list[PointDifference]:
    """All differences of an evaluation, by set and metric, their p-values corrected for their number."""
    labels, values = [], []
    for name, by_metric in found.items():
        for metric, compared in by_metric.items():
            for repair, difference in compared.differences.items():
                labels.append((name, metric, repair))
                values.append(difference)
    return [
        PointDifference(
            *label, 100 * d.value, 100 * d.low, 100 * d.high, d.p, d.corrected, d.significant, d.n, d.reason
        )
        for label, d in zip(labels, corrected(values), strict=True)
    ]


def plain(row: Any) -> dict[str, Any]:
    """A row of a table without NaN: what is undefined is None."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(row).items()}
