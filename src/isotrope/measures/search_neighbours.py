"""What measures of search share: lists of the nearest directions, and their note."""

from __future__ import annotations

from typing import Any

from isotrope.errors import Undefined
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import K
from isotrope.statistics.neighbours import Neighbours

#: Rows of isotropic null spaces at most. Their hubs, islands and outliers hardly depend on n: the share of slots that
#: hubs hold is 0.016 to 0.020 for 1,000 to 20,000 rows in 2 to 64 dimensions, up to 8,000 rows in 384 and 768.
NULL_ROWS = 4_000

#: Why equal directions count once.
DISTINCT = (
    "Rows that point the same way count once: ten copies of a row would fill each other's lists (duplicates are "
    "counted on their own)."
)

ENOUGH = 1_000


def find_nearest_directions(p: Points, k: int = K) -> Neighbours:
    """The k nearest others of each distinct unit row, nearest first."""
    directions = p.unit.distinct
    if directions.n <= k + 1:
        raise Undefined(f"needs more than {k + 1} rows that point in different directions, found {directions.n}")
    which, distance = directions.neighbours
    return Neighbours(which[:, :k], distance[:, :k])


def describe_directions(p: Points) -> str:
    """The note of a measure of search: k, the number of directions, and the rows that were left out."""
    n = p.unit.distinct.n
    left_out = f"; {p.n - n:,} rows point the same way as others and are left out" if p.n > n else ""
    return f"k = {K}, n = {n:,} directions{left_out}"


#: What records of these measures share.
SHARED: dict[str, Any] = {
    "group": "search",
    "range": (0.0, 1.0),
    "at_n": True,
    "note": describe_directions,
    "enough": lambda d: ENOUGH,
}
