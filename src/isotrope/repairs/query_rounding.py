"""How much of the ten nearest rows is kept when queries are rounded before a repair."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Map

Matrix = NDArray[np.float64]

#: Rows that are searched, and queries among them.
ROWS, QUERIES = 2_000, 500

#: Nearest rows that are looked at.
NEAREST = 10


class Applicable(Protocol):
    """What can be applied to rows: a fitted repair."""

    @property
    def applied_map_(self) -> Map:
        """What is done to rows."""


@dataclass(frozen=True)
class QueryRounding:
    """Share of their nearest rows, by cosine after the repair, that queries keep when they are rounded before it.

    Attributes:
        float16: Share for queries rounded to float16.
        int8: Share for queries rounded to int8.
        queries: Number of queries.
        rows: Number of rows that are searched.
        nearest: Number of nearest rows of each query.
    """

    float16: float
    int8: float
    queries: int
    rows: int
    nearest: int = NEAREST

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"Queries rounded to float16 keep {self.float16:.1%} of their {self.nearest} nearest rows, "
            f"rounded to int8 {self.int8:.1%} ({self.queries:,} queries among {self.rows:,} rows)."
        )


def measure_query_rounding(repair: Applicable, X: Any) -> QueryRounding:
    """Search among repaired rows with exact and with rounded queries, and compare what is found.

    Documents are the repaired rows, at most 2,000. Queries are up to 500 of them, rounded before the repair: to
    float16, or to int8 as scalar quantizers do, in 255 equal steps between the least and the greatest value of each
    coordinate. A query does not find itself.

    Args:
        repair: a fitted repair.
        X: rows like those that it was fitted on, (n, d), at least 12.

    >>> from isotrope import Centering
    >>> rows = np.random.default_rng(0).normal(size=(200, 8))
    >>> measure_query_rounding(Centering().fit(rows), rows).float16 > 0.98
    True
    """
    rows = to_float64(to_matrix(X)[:ROWS])
    if len(rows) < NEAREST + 2:
        raise InputError(f"got {len(rows)} rows, expected at least {NEAREST + 2} to compare {NEAREST} nearest rows.")
    apply = repair.applied_map_
    documents = to_unit_rows(to_float64(apply(rows)))
    queries = rows[:QUERIES]
    exact = find_nearest(documents[: len(queries)], documents)

    def compute_share(rounded: Matrix) -> float:
        return compute_kept_share(exact, find_nearest(to_unit_rows(to_float64(apply(rounded))), documents))

    float16, int8 = compute_share(_round_to_float16(queries)), compute_share(_round_to_int8(queries, rows))
    return QueryRounding(float16, int8, len(queries), len(rows))


def find_nearest(queries: Matrix, documents: Matrix, count: int = NEAREST) -> NDArray[np.int64]:
    """Find the nearest documents of each query, all of length 1, (q, count); query i does not find document i."""
    cosines = queries @ documents.T
    np.fill_diagonal(cosines, -np.inf)
    return np.argpartition(-cosines, count - 1, axis=1)[:, :count]


def compute_kept_share(before: NDArray[np.int64], after: NDArray[np.int64]) -> float:
    """Compute the share of the nearest rows, (q, count), that are among those of the same query afterwards."""
    return sum(len(np.intersect1d(*pair)) for pair in zip(before, after, strict=True)) / before.size


def _round_to_float16(queries: Matrix) -> Matrix:
    with np.errstate(over="ignore"):
        rounded = queries.astype(np.float16).astype(np.float64)
    return np.where(np.isfinite(rounded), rounded, np.sign(queries) * float(np.finfo(np.float16).max))


def _round_to_int8(queries: Matrix, rows: Matrix) -> Matrix:
    low, high = rows.min(axis=0), rows.max(axis=0)
    step = np.where(high > low, (high - low) / 255, 1.0)
    return np.asarray(low + np.round((queries - low) / step) * step)
