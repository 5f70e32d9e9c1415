"""How far queries are from documents as a whole."""

from __future__ import annotations

import math

import numpy as np

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.errors import Undefined
from isotrope.measures.queried_documents import SHARED, check_queries
from isotrope.measures.record import Smooth, measure
from isotrope.statistics.queried_points import QueriedPoints


def _compute_squared_gap(q: QueriedPoints) -> float:
    """Squared distance of the two means over the documents' variance."""
    check_queries(q)
    documents, queries = q.documents.rows, q.queries.rows
    scale = float(np.abs(documents).max())
    middle = documents.mean(axis=0)
    variance = float(compute_squared_lengths((documents - middle) / scale).mean())
    if variance <= 1e-30:
        raise Undefined("the documents do not vary")
    between = (queries.mean(axis=0) - middle) / scale
    return float(between @ between) / variance


@measure(
    "queries",
    title="Query gap",
    says="How far the mean query is from the mean document, in units of the documents' spread: 0 is the same place.",
    range=(0.0, math.inf),
    better="lower",
    invariant=("rotation", "scale", "shift"),
    smooth=Smooth(
        of=_compute_squared_gap,
        forward=lambda value, near: value**2,
        back=lambda low, high: (math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))),
    ),
    formula="‖mean of queries − mean of documents‖ / √V, V the documents' variance E‖x − μ‖²",
    paper="Liang et al. 2022 (the gap between two kinds of input)",
    blind="Whether the gap hurts: queries may lie apart and still find what they should.",
    **SHARED,
)
def query_gap(q: QueriedPoints) -> float:
    """Distance of the two means over the documents' spread."""
    return math.sqrt(_compute_squared_gap(q))


@measure(
    "queries",
    title="Cosine of the means",
    says="Cosine of the mean query and the mean document: near 1 both share their common direction.",
    range=(-1.0, 1.0),
    formula="cos(mean of queries, mean of documents)",
    paper="Liang et al. 2022 (the gap between two kinds of input)",
    blind="Spaces without a common direction: there both means are near 0 and their cosine is chance.",
    **SHARED,
)
def query_mean_cosine(q: QueriedPoints) -> float:
    """Cosine of the mean of the queries and the mean of the documents."""
    check_queries(q)
    means = []
    for points in (q.queries, q.documents):
        mean = (points.rows / np.abs(points.rows).max()).mean(axis=0)
        length = float(np.linalg.norm(mean))
        if length <= 1e-12:
            raise Undefined("a mean is zero and has no direction")
        means.append(mean / length)
    return float(np.clip(means[0] @ means[1], -1.0, 1.0))
