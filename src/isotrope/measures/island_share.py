"""How many rows are cut off from the rest of the neighbour graph."""

from __future__ import annotations

import numpy as np

from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import DISTINCT, NULL_ROWS, SHARED, find_nearest_directions
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import ISLAND, K, find_island_sizes


@measure(
    "sample",
    title="Island share",
    says="Share of rows in small islands of the neighbour graph, which graph indexes such as HNSW may not reach.",
    better="lower",
    null_rows=NULL_ROWS,
    row_share=True,
    formula=f"share of rows in components of fewer than {ISLAND} rows of the mutual k = 10 nearest neighbour graph",
    paper="Brito et al. 1997 (mutual neighbour graph); Malkov and Yashunin 2020 (HNSW)",
    blind=f"Islands that are larger, which may be topics. Its interval is about the value at this n. {DISTINCT}",
    wrong="The graph that joins rows where either lists the other (vecscope 0.2): antihubs are never islands there.",
    **SHARED,
)
def island_share(p: Points, k: int = K) -> float:
    """Share of the unit rows in small components of the mutual neighbour graph."""
    return float(np.mean(find_island_sizes(find_nearest_directions(p, k).which) < ISLAND))
