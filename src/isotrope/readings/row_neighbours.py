"""What its nearest neighbours tell of each sampled row, and which rows to look at: hubs, outliers, duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.layers import Layer
from isotrope.readings.unusual_rows import MOST_NAMED
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import (
    OUTLIER,
    K,
    count_occurrences,
    find_near_duplicate_groups,
    score_outliers,
    to_cosines,
)

#: Times k below which no row is a hub, however often it is a neighbour. Of independent choices, which isotropic rows
#: are close to at any width, a row is a neighbour about Poisson(k) times: 5k times or more with a probability of 3e-19.
HUB = 5.0

#: Probability that rows without a hub seem to have one.
_CHANCE = 0.01

#: Share of the rows that is neighbours most often, and is left aside when the spread of all others is estimated.
_TOP = 0.01

#: Rows below which the distances to neighbours do not say what is usual.
FEWEST_ROWS = 100


@dataclass(frozen=True, eq=False)
class RowNeighbours:
    """What is known of n sampled rows, in the order of their numbers.

    Rows of the same direction are one when neighbours are counted, and share what is counted: ten copies of a row would
    fill each other's lists.

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
        """Compare points, of two directions or more, with each other by cosine."""
        directions, index = points.unit.distinct, points.unit.distinct_index
        k = min(k, directions.n - 1)
        which, distance = directions.neighbours.which[:, :k], directions.neighbours.distance[:, :k]
        cosine = to_cosines(distance)
        following = _find_following(index)
        is_copied = following != np.arange(points.n)
        return cls(
            row=points.sequence,
            norm=np.sqrt(compute_squared_lengths(points.rows)),
            occurrences=count_occurrences(which, directions.n)[index],
            nearest=np.where(is_copied, points.sequence[following], directions.sequence[which[index, 0]]),
            cosine=np.where(is_copied, 1.0, cosine[index, 0]),
            score=score_outliers(distance[:, -1])[index],
            group=_number_groups(find_near_duplicate_groups(which, cosine), index),
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


def _find_following(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the next row of the same direction, after the last the first; a row alone has itself, (n,) -> (n,).

    >>> _find_following(np.array([0, 1, 0, 0])).tolist()
    [2, 1, 3, 0]
    """
    order = np.argsort(index, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(index[order])), len(order) - 1)
    following = np.roll(order, -1)
    following[ends] = order[np.append(0, ends[:-1] + 1)]
    found = np.empty_like(order)
    found[order] = following
    return found


def _number_groups(near: list[NDArray[np.int64]], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each row's group of equal or near directions, the largest first, -1 for rows alone.

    Args:
        near: Groups of directions that are near each other.
        index: The direction of each row, (n,).

    >>> _number_groups([np.array([1, 2])], np.array([0, 0, 0, 1, 2, 3])).tolist()
    [0, 0, 0, 1, 1, -1]
    """
    component = np.arange(int(index.max()) + 1)
    for members in near:
        component[members] = members[0]
    _, first, which, counts = np.unique(component[index], return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    number = np.full(len(counts), -1, np.int64)
    several = int((counts > 1).sum())
    number[order[:several]] = np.arange(several)
    return number[which]


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


def list_neighbour_rows(
    found: RowNeighbours, equal: Sequence[Mapping[str, Any]], layer: Layer
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """List the rows to look at by kind, the worst first, as plain data, and count all of each kind.

    Kinds: `duplicates` (equal rows and near-duplicates), `hubs` (see `find_hub_threshold`), `never_found` (in no list)
    and `outliers` (a score of 6 or more).

    Args:
        found: What is known of the sampled rows.
        equal: The rows of groups of equal rows, found among all rows.
        layer: Of the rows.
    """
    least = find_hub_threshold(found.occurrences, found.k)
    hubs = _sort_rows(found.occurrences >= least, -found.occurrences, found)
    never = _sort_rows(found.occurrences == 0, -found.score, found)
    outliers = _sort_rows((found.score >= OUTLIER) & (found.n >= FEWEST_ROWS), -found.score, found)
    rows: dict[str, list[dict[str, Any]]] = {
        "duplicates": [*map(dict, equal), *_list_near_duplicates(found, equal, layer)][:MOST_NAMED],
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


def _list_near_duplicates(
    found: RowNeighbours, equal: Sequence[Mapping[str, Any]], layer: Layer
) -> list[dict[str, Any]]:
    """The rows of groups that are not all among equal rows, which are listed already."""
    known = {row["id"] for row in equal}
    number = 1 + max((row["group"] for row in equal), default=-1)
    rows = []
    for members in _split_groups(found):
        if not known.issuperset(members):
            rows += [
                {"id": row, "layer": layer, "group": number, "size": len(members), "equal": False} for row in members
            ]
            number += 1
        if len(rows) >= MOST_NAMED:
            break
    return rows


def _split_groups(found: RowNeighbours) -> Iterator[list[int]]:
    """The numbers of the rows of each group, in the order of the groups."""
    order = np.argsort(found.group, kind="stable")[int((found.group < 0).sum()) :]
    for places in np.split(order, np.flatnonzero(np.diff(found.group[order])) + 1) if len(order) else ():
        yield found.row[places].tolist()
