"""Documents with the lengths of their texts, beside what a length may decide: norm, closeness, being found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.statistics.neighbourhoods import K, count_occurrences
from isotrope.statistics.points import Points
from isotrope.statistics.queried_points import QueriedPoints

Column = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextLengths:
    """One number of each kind for each document whose text is known; documents that point the same way count once.

    Attributes:
        length: Characters of the text, (n,).
        norm: Length of the row, (n,).
        closeness: Mean cosine to the other documents, (n,).
        found: In how many queries' k nearest documents it is, without queries in how many documents' ones, (n,).
        group: The group that it is left out with for intervals, (n,).
        d: Number of dimensions.
    """

    length: Column
    norm: Column
    closeness: Column
    found: Column
    group: NDArray[np.int64]
    d: int

    @classmethod
    def of(cls, points: Points, lengths: Mapping[int, int], queried: QueriedPoints | None = None) -> TextLengths:
        """Documents with the lengths of their texts by row number; queried: the same documents with queries."""
        unit = points.unit.distinct
        known = np.array([int(row) in lengths for row in unit.sequence], dtype=bool)
        norms = dict(zip(points.sequence.tolist(), np.sqrt(compute_squared_lengths(points.rows)).tolist(), strict=True))
        others = max(unit.n - 1, 1)
        lists = np.empty((0, K), np.int64)
        if unit.n > 1:
            lists = unit.neighbours.which[:, :K] if queried is None else queried.results.which
        columns = {
            "length": [lengths.get(int(row), 0) for row in unit.sequence],
            "norm": [norms[int(row)] for row in unit.sequence],
            "closeness": (unit.rows @ unit.rows.sum(axis=0) - 1.0) / others,
            "found": count_occurrences(lists, unit.n),
        }
        made = {name: np.asarray(column, dtype=np.float64)[known] for name, column in columns.items()}
        return cls(**made, group=unit.group[known], d=points.d)

    @property
    def n(self) -> int:
        return len(self.length)

    def leave_out(self, group: int) -> TextLengths:
        """These documents without those of a group."""
        return self.only(self.group != group)

    def only(self, at: NDArray[Any]) -> TextLengths:
        """Some of the documents, by index or mask."""
        columns = {f.name: getattr(self, f.name)[at] for f in fields(self) if f.name != "d"}
        return TextLengths(**columns, d=self.d)
