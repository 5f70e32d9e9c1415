"""How many queries lie where there are no documents."""

from __future__ import annotations

import numpy as np

from isotrope.measures.queried_documents import SHARED, find_results
from isotrope.measures.record import measure
from isotrope.statistics.queried_points import QueriedPoints

#: Share of the documents that are nearer to their nearest other document than a far query is to its nearest one.
_USUAL = 0.99


@measure(
    "queries",
    title="Far queries",
    says="Share of queries that are farther from their nearest document than 99 % of documents are from theirs.",
    range=(0.0, 1.0),
    better="lower",
    row_share=True,
    null=lambda n, d: 1.0 - _USUAL,
    formula="share of queries with min_j (1 − cos(q, x_j)) above the 0.99 quantile of min_{j≠i} (1 − cos(x_i, x_j))",
    paper="Knorr and Ng 1998 (outliers by distance)",
    blind="Queries that are written unlike documents, as short questions are: they may all count as far.",
    **SHARED,
)
def far_queries(q: QueriedPoints) -> float:
    """Share of queries beyond the usual distance between a document and its nearest other one."""
    nearest = find_results(q).distance[:, 0]
    usual = np.quantile(q.documents.unit.distinct.neighbours.distance[:, 0], _USUAL)
    return float(np.mean(nearest > usual))
