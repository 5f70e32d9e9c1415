"""What its nearest neighbours tell of each sampled row, and which rows to look at: hubs, outliers, duplicates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from isotrope.layers import Layer
from isotrope.readings.unusual_rows import MOST_NAMED
from isotrope.statistics import Duplicates, Points, Sample, Summary
from isotrope.statistics.neighbourhoods import (
    OUTLIER,
    K,
    count_occurrences,
    find_near_duplicate_groups,
    score_outliers,
    to_cosines,
)
from isotrope.statistics.neighbours import nearest

#: Times k below which no row is a hub, however often it is a neighbour. Of independent choices, which isotropic rows
#: are close to at any width, a row is a neighbour about Poisson(k) times: 5k times or more with a probability of 3e-19.
HUB = 5.0

#: Probability that rows without a hub seem to have one.
_CHANCE = 0.01

#: Share of the rows that is neighbours most often, and is left aside when the spread of all others is estimated.
_TOP = 0.01

#: Rows below which the distances to neighbours do not say what is usual.
FEWEST_ROWS = 100

#: The smallest distance whose logarithm is taken: equal rows have none.
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class RowNeighbours:
    """What is known of n sampled rows, in the order of their numbers.

    Attributes:
        row: (n,), the number of each row.
        norm: (n,), its length.
        occurrences: (n,), in how many of the other rows' lists of k nearest neighbours it is.
        nearest: (n,), the number of its nearest neighbour by cosine.
        cosine: (n,), the cosine to it.
        score: (n,), how far its k-th neighbour is: median absolute deviations of the log distance above the median.
        group: (n,), the number of its group of near-duplicates, the largest group first, -1 where it is in none.
        k: Neighbours that count.

    >>> found = RowNeighbours.of(Points(np.eye(3)[[0, 0, 1]] + 0.1, np.arange(3, dtype=np.uint64), np.zeros(3, int)))
    >>> found.nearest.tolist()[:2], found.group.tolist()
    ([1, 0], [0, 0, -1])
    """

    row: NDArray[np.uint64]
    norm: NDArray[np.float64]
    occurrences: NDArray[np.int64]
    nearest: NDArray[np.uint64]
    cosine: NDArray[np.float64]
    score: NDArray[np.float64]
    group: NDArray[np.int64]
    k: int

    @classmethod
    def of(cls, points: Points, k: int = K) -> RowNeighbours:
        """Compare points, at least two, with each other by cosine."""
        unit, k = points.unit, min(k, points.n - 1)
        which, distance = nearest(unit.rows, k)
        cosine = to_cosines(distance)
        group = np.full(points.n, -1, np.int64)
        for number, members in enumerate(find_near_duplicate_groups(which, cosine)):
            group[members] = number
        return cls(
            row=points.sequence,
            norm=np.linalg.norm(points.rows, axis=1),
            occurrences=count_occurrences(which, points.n),
            nearest=points.sequence[which[:, 0]],
            cosine=cosine[:, 0],
            score=score_outliers(np.maximum(distance[:, -1], _SMALLEST)),
            group=group,
            k=k,
        )

    @property
    def n(self) -> int:
        return len(self.row)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of the table of rows."""
        return {
            "row": self.row,
            "norm": self.norm,
            "occurrences": self.occurrences,
            "nearest": self.nearest,
            "cosine": self.cosine,
            "duplicate_group": self.group,
            "outlier_score": self.score,
        }


def find_hub_threshold(occurrences: NDArray[np.int64], k: int) -> int:
    """Find how often a row must be a neighbour to be a hub: 5 k times, or more where all rows differ in it.

    Real rows are not neighbours equally often. How far they differ is taken from all rows, those that are neighbours
    most often cut to the 99 % quantile; with a gamma distribution of the rates the counts are negative binomial. A hub
    is a neighbour so often that among n rows of that distribution none would be, with a probability of 99 %.

    >>> find_hub_threshold(np.full(1000, 10), 10)
    50
    """
    n = len(occurrences)
    cut = np.minimum(occurrences, np.quantile(occurrences, 1.0 - _TOP, method="higher"))
    mean, variance = float(cut.mean()), float(cut.var())
    least = math.ceil(HUB * k)
    if variance <= mean:  # no more than by chance
        return least
    shape = mean**2 / (variance - mean)
    counts = np.arange(least, max(least, n) + 1)
    beyond = n * betainc(counts, shape, mean / (mean + shape))  # n times P(count or more), negative binomial
    return int(counts[np.argmax(beyond < _CHANCE)]) if beyond[-1] < _CHANCE else n


def has_items(sample: Sample | None) -> bool:
    """Whether each row of a sample is an item of its own, such as a vector or a whole text; of two rows or more."""
    return sample is not None and sample.n > 1 and sample.rows.position is None


def list_neighbour_rows(
    found: RowNeighbours, summary: Summary, layer: Layer
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """List the rows to look at by kind, the worst first, as plain data, and count all of each kind.

    Kinds: `duplicates` (rows of equal rows, over all rows, and rows of near-duplicates in the sample), `hubs` (see
    `find_hub_threshold`), `never_found` (in none) and `outliers` (a score of 6 or more).
    """
    least = find_hub_threshold(found.occurrences, found.k)
    hubs = _sort_rows(found.occurrences >= least, -found.occurrences, found)
    never = _sort_rows(found.occurrences == 0, -found.score, found)
    outliers = _sort_rows((found.score >= OUTLIER) & (found.n >= FEWEST_ROWS), -found.score, found)
    rows = {
        "duplicates": _list_duplicates(found, summary.duplicates, layer),
        "hubs": [_describe(found, i, layer) for i in hubs[:MOST_NAMED]],
        "never_found": [_describe(found, i, layer) for i in never[:MOST_NAMED]],
        "outliers": [_describe(found, i, layer) for i in outliers[:MOST_NAMED]],
    }
    counts = {
        "examined_rows": found.n,
        "hub_rows": len(hubs),
        "never_found_rows": len(never),
        "outlier_rows": len(outliers),
        "near_duplicate_rows": int((found.group >= 0).sum()),
    }
    if summary.duplicates is not None:
        counts["duplicate_rows"] = summary.duplicates.repeated
    return {kind: listed for kind, listed in rows.items() if listed}, counts


def _sort_rows(among: NDArray[np.bool_], rank: NDArray[Any], found: RowNeighbours) -> NDArray[np.int64]:
    """The places of some rows, those of the smallest rank first and then by their numbers."""
    places = np.flatnonzero(among)
    return places[np.lexsort((found.row[places], rank[places]))]


def _describe(found: RowNeighbours, i: int, layer: Layer) -> dict[str, Any]:
    return {
        "id": int(found.row[i]),
        "layer": layer,
        "occurrences": int(found.occurrences[i]),
        "nearest": int(found.nearest[i]),
        "cosine": float(found.cosine[i]),
        "outlier_score": float(found.score[i]),
    }


def _list_duplicates(found: RowNeighbours, exact: Duplicates | None, layer: Layer) -> list[dict[str, Any]]:
    """The rows of groups of equal rows, then those of near-duplicates that are not all in one of these groups."""
    groups = [] if exact is None else [(group.ids, group.size, True) for group in exact.groups(MOST_NAMED)]
    known = {row for ids, _, _ in groups for row in ids}
    for number in range(int(found.group.max(initial=-1)) + 1):
        members = found.row[found.group == number].tolist()
        if not known.issuperset(members):
            groups.append((members, len(members), False))
    rows = [
        {"id": int(row), "layer": layer, "group": number, "group_size": size, "equal": equal}
        for number, (ids, size, equal) in enumerate(groups)
        for row in ids
    ]
    return rows[:MOST_NAMED]
