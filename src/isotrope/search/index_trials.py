"""Trials of index settings: each is built after each repair, searched for all queries, and timed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from isotrope.compute.arrays import to_unit_rows
from isotrope.evaluation.treatments import OWN, Treatment
from isotrope.pipeline import Progress
from isotrope.search.faiss_index import Found, UnitRows, VectorIndex
from isotrope.search.index_data import IndexData
from isotrope.search.index_recall import RANKED
from isotrope.search.index_settings import FAMILIES, IndexFamily

#: Queries that the speed is measured with at most.
_TIMED = 100


@dataclass(frozen=True, eq=False)
class IndexTrial:
    """One setting after one repair: what its index finds for each query, and what it costs."""

    family: str
    setting: str
    found: Found
    bytes: float = math.nan
    rescoring_bytes: float = 0.0
    seconds: float = math.nan
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class TreatmentTrial:
    """Unit rows after one repair, and all settings that were tried on them, exact search first."""

    repair: str
    rows: UnitRows
    queries: UnitRows
    data: IndexData
    trials: list[IndexTrial] = field(default_factory=list)

    @property
    def exact(self) -> Found:
        """What exact search finds."""
        return self.trials[0].found


def try_treatment(treatment: Treatment, data: IndexData, k: int, seed: int, tell: Progress) -> TreatmentTrial:
    """Fit a repair, apply it, and try every setting."""
    fitted = treatment.fit(data.rows, OWN, "the vectors")
    rows, queries = (
        np.ascontiguousarray(to_unit_rows(np.asarray(fitted(part), dtype=np.float64)), dtype=np.float32)
        for part in (data.rows, data.queries)
    )
    found = TreatmentTrial(treatment.name, rows, queries, data)
    depth = min(max(k, RANKED + 1), len(rows))  # one more than nDCG looks at: a query may find its own document
    for number, family in enumerate(FAMILIES):
        tell(f"indexes of vectors with {treatment.name}", number, len(FAMILIES))
        found.trials.extend(try_family(family, rows, queries, k, depth, seed))
    return found


def try_family(
    family: IndexFamily, rows: UnitRows, queries: UnitRows, k: int, depth: int, seed: int
) -> Iterator[IndexTrial]:
    """Build each index of a family, and search it in each way.

    Args:
        family: The family.
        rows: Unit rows, (n, d).
        queries: Unit rows, (q, d).
        k: Neighbours that the speed is measured for.
        depth: Neighbours that are found for each query.
        seed: Seed of training.
    """
    n, d = rows.shape
    for value in family.grid(n, d):
        searches = family.list_searches(value)
        if n < family.least_rows:
            reason = f"it needs at least {family.least_rows:,} vectors to train on, got {n:,}"
            none = np.full((len(queries), depth), -1)
            yield from (IndexTrial(family.name, setting, none, reason=reason) for setting in searches)
            continue
        index = family.build(rows, value, seed)
        for setting, parameters in searches.items():
            yield IndexTrial(
                family.name,
                setting,
                index.search(queries, depth, parameters),
                index.bytes_per_vector,
                4.0 * d if family.uses_rows and parameters else 0.0,
                measure_seconds(index, queries, k, parameters),
            )


def measure_seconds(index: VectorIndex, queries: UnitRows, k: int, parameters: Mapping[str, int]) -> float:
    """The median time of a search for one query."""
    times = []
    for row in queries[:_TIMED]:
        start = time.perf_counter()
        index.search(row[None], k, parameters)
        times.append(time.perf_counter() - start)
    return float(np.median(times))
