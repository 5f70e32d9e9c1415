"""Queries and the documents that they search: which documents each query finds, and how near they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MergeError
from isotrope.statistics.neighbourhoods import K
from isotrope.statistics.neighbours import Neighbours, nearest
from isotrope.statistics.points import Points
from isotrope.statistics.usable_rows import prepare_rows


@dataclass(eq=False)
class QueriedPoints:
    """Documents and the queries that search them by cosine. A value with an empty element and `+`.

    Documents that point the same way count once. When a group is left out for an interval, it is one of queries: the
    documents are those of the index, and other queries may come.

    documents: n points. queries: m points of the same width.
    """

    documents: Points
    queries: Points
    _whole: tuple[QueriedPoints, NDArray[np.bool_]] | None = None  # the pair that this is a part of, and which queries

    @classmethod
    def empty(cls, d: int) -> QueriedPoints:
        return cls(Points.empty(d), Points.empty(d))

    @classmethod
    def of(cls, documents: Any, queries: Any) -> QueriedPoints:
        """Documents, (n, d), and queries, (m, d); rows that are zero or not finite are left out."""
        before, after = prepare_rows(documents), prepare_rows(queries)
        if before.values.shape[1] != after.values.shape[1]:
            raise InputError(
                f"the documents have {before.values.shape[1]:,} dimensions and the queries "
                f"{after.values.shape[1]:,}; give vectors of one model."
            )
        return cls(Points.of(before), Points.of(after))

    @property
    def n(self) -> int:
        """The number of queries: what varies."""
        return self.queries.n

    @property
    def d(self) -> int:
        return self.documents.d

    @property
    def group(self) -> NDArray[np.int64]:
        """The group of each query."""
        return self.queries.group

    def leave_out(self, group: int) -> QueriedPoints:
        """The same without the queries of a group."""
        return self.only(self.group != group)

    def only(self, at: NDArray[np.bool_]) -> QueriedPoints:
        """The same with some of the queries, by a mask."""
        return QueriedPoints(self.documents, self.queries.only(at), (self, at))

    @cached_property
    def results(self) -> Neighbours:
        """The nearest documents of each query by cosine, K of them or all but one: their places and distances.

        Places are among the distinct directions of the documents; distances are those of unit rows.
        """
        if self._whole is not None:
            whole, at = self._whole
            return Neighbours(whole.results.which[at], whole.results.distance[at])
        documents, queries = self.documents.unit.distinct.rows, self.queries.unit.rows
        both = np.concatenate([documents, queries])
        asking = np.arange(len(documents), len(both))
        return nearest(both, max(0, min(K, len(documents) - 1)), asking, np.arange(len(both)) < len(documents))

    def check(self, other: QueriedPoints) -> None:
        """Refuse what cannot be merged."""
        if other.d != self.d:
            raise MergeError(f"cannot merge points of width {other.d} and {self.d}.")

    def __add__(self, other: QueriedPoints) -> QueriedPoints:
        self.check(other)
        return QueriedPoints(self.documents + other.documents, self.queries + other.queries)
