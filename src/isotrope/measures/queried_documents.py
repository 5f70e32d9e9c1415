"""What measures of queries share: the lists of documents that are found, and their note."""

from __future__ import annotations

from typing import Any

from isotrope.errors import Undefined
from isotrope.statistics.neighbourhoods import K
from isotrope.statistics.neighbours import Neighbours
from isotrope.statistics.queried_points import QueriedPoints

#: Queries from which on a value tells more of the queries than of their number.
ENOUGH = 100


def find_results(q: QueriedPoints) -> Neighbours:
    """The K nearest documents of each query, nearest first."""
    check_queries(q)
    if (n := q.documents.unit.distinct.n) <= K + 1:
        raise Undefined(f"needs more than {K + 1} documents that point in different directions, found {n}")
    return q.results


def check_queries(q: QueriedPoints) -> None:
    """Raise the reason where there are no queries or fewer than two documents."""
    if q.n == 0:
        raise Undefined("there is no query")
    if q.documents.n < 2:
        raise Undefined(f"needs two documents, found {q.documents.n}")


def describe_queries(q: QueriedPoints) -> str:
    """The note of a measure of queries."""
    return f"{q.n:,} queries of {q.documents.unit.distinct.n:,} documents, k = {K}"


#: What the records of these measures share.
SHARED: dict[str, Any] = {"note": describe_queries, "enough": lambda d: ENOUGH}
