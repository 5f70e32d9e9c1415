"""Which documents queries find: a few again and again, others never, and how clearly the first is ahead."""

from __future__ import annotations

import math

import numpy as np

from isotrope.errors import Undefined
from isotrope.measures.queried_documents import SHARED, find_results
from isotrope.measures.record import measure
from isotrope.statistics.neighbourhoods import count_occurrences, to_cosines
from isotrope.statistics.queried_points import QueriedPoints


@measure(
    "queries",
    title="Query hubness",
    says="How unequally documents are found by the queries: above 1 a few come back for nearly everything.",
    range=lambda n, d: (-math.sqrt(max(n, 2)), math.sqrt(max(n, 2))),
    better="lower",
    estimate=False,
    formula="skewness over documents of N_k, N_k = in how many queries' k = 10 nearest a document is",
    paper="Radovanović, Nanopoulos and Ivanović 2010",
    blind=(
        "Whether the hubs are right: some documents do answer many questions. It changes with the number of queries "
        "and documents, and the strongest few hubs decide, so it has no interval."
    ),
    **SHARED,
)
def query_hubness(q: QueriedPoints) -> float:
    """Skewness of how often each document is among the nearest of a query."""
    times = count_occurrences(find_results(q).which, q.documents.unit.distinct.n).astype(np.float64)
    apart = times - times.mean()
    spread = float(np.mean(apart**2))
    if spread == 0.0:
        raise Undefined("every document is found equally often, so the skewness is undefined")
    return float(np.mean(apart**3) / spread**1.5)


@measure(
    "queries",
    title="Never returned",
    says="Share of documents that are in no query's ten nearest.",
    range=(0.0, 1.0),
    better="lower",
    at_n=True,
    formula="share of documents with N_k = 0, N_k = in how many queries' k = 10 nearest a document is",
    paper="Radovanović, Nanopoulos and Ivanović 2010 (antihubs)",
    blind="Other queries: few cannot reach many documents. Its interval is about the value at this n.",
    **SHARED,
)
def never_returned(q: QueriedPoints) -> float:
    """Share of documents that no query finds."""
    return float(np.mean(count_occurrences(find_results(q).which, q.documents.unit.distinct.n) == 0))


@measure(
    "queries",
    title="Query margin",
    says="How far the cosine of the first document is above that of the tenth, on average over queries.",
    range=(0.0, 2.0),
    better="higher",
    formula="mean over queries of cos(q, first) − cos(q, tenth)",
    paper="Beyer et al. 1999 (contrast of nearest neighbours)",
    blind="Whether the first document is the right one. Copies of a document count once.",
    **SHARED,
)
def query_margin(q: QueriedPoints) -> float:
    """Mean difference between the first and the tenth score."""
    cosines = to_cosines(find_results(q).distance)
    return float(np.mean(cosines[:, 0] - cosines[:, -1]))
