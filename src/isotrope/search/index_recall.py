"""What an index keeps of exact search: recall, which does not mind equal rows, and nDCG of its rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import slice_rows
from isotrope.evaluation.metrics import Vector
from isotrope.evaluation.ranking import score_rankings
from isotrope.search.faiss_index import Found, UnitRows
from isotrope.search.index_data import IndexData

#: Queries whose neighbours are compared at a time.
_AT_ONCE = 64

#: Documents of a ranking that nDCG looks at.
RANKED = 10

#: Scores of equal rows differ by less.
_ROUNDING = 1e-12


def compute_recall(rows: UnitRows, queries: UnitRows, exact: Found, found: Found) -> Vector:
    """The share of the nearest rows of each query that were found, (q, k) -> (q,).

    A row that is exactly as near as the farthest of the nearest ones counts too: which of equal rows an index returns
    does not matter.

    Args:
        rows: Unit rows, (n, d).
        queries: Unit rows, (q, d).
        exact: Numbers of the k nearest rows.
        found: Numbers of k rows, -1 where there are fewer.
    """
    shares = np.empty(len(queries))
    for part in slice_rows(len(queries), _AT_ONCE):
        bar = _score_pairs(rows, queries[part], exact[part]).min(axis=1, keepdims=True)
        scores = np.where(found[part] >= 0, _score_pairs(rows, queries[part], found[part]), -np.inf)
        shares[part] = (scores >= bar - _ROUNDING).sum(axis=1) / exact.shape[1]
    return shares


def _score_pairs(rows: UnitRows, queries: UnitRows, numbers: Found) -> NDArray[np.float64]:
    """Inner products of queries with rows of some numbers in float64, (q, k)."""
    return np.asarray(np.einsum("qkd,qd->qk", rows[numbers].astype(np.float64), queries.astype(np.float64)))


def compute_ndcg(found: Found, data: IndexData) -> Vector:
    """nDCG@10 of each query, without the row that has the id of the query."""
    assert data.judged is not None
    ranked = np.full((len(found), RANKED), -1)
    for query, (numbers, own) in enumerate(zip(found, data.own, strict=True)):
        others = numbers[(numbers != own) & (numbers >= 0)][:RANKED]
        ranked[query, : len(others)] = others
    return score_rankings(ranked, data.judged)["ndcg_at_10"]
