"""How many rows are far from all others."""

from __future__ import annotations

import numpy as np

from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import DISTINCT, NULL_ROWS, SHARED, find_nearest_directions
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import OUTLIER, K, score_outliers


@measure(
    "sample",
    title="Outlier rows",
    says="Share of rows whose tenth neighbour is unusually far: foreign content, other languages, broken texts.",
    better="lower",
    null_rows=NULL_ROWS,
    row_share=True,
    formula="share of rows with log r_k > median + 6 MAD of log r_k, r_k: distance to the k = 10th nearest direction",
    paper="Ramaswamy, Rastogi and Shim 2000 (k-th neighbour distance); Leys et al. 2013 (median and MAD)",
    blind=(
        "Groups of more than ten outliers, which are near to each other (island_share). Its interval is about the "
        f"value at this n. {DISTINCT}"
    ),
    wrong="Distances, not their logarithms: skewed, so that in tight spaces many usual rows are called outliers.",
    **SHARED,
)
def outlier_rows(p: Points, k: int = K) -> float:
    """Share of the unit rows whose k-th neighbour is farther than the rule allows."""
    return float(np.mean(score_outliers(find_nearest_directions(p, k).distance[:, -1]) > OUTLIER))
