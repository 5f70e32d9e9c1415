"""How many rows have a nearly equal one beside them."""

from __future__ import annotations

import numpy as np
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import SHARED, describe_directions
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import NEAR_DUPLICATE, to_cosines


def compute_log_no_closer(cosine: float, n: int, d: int) -> float:
    """log P(no other of n isotropic directions in d dimensions has a greater cosine with one of them)."""
    if d == 1:
        return 0.0 if cosine >= 1.0 else -float("inf")
    # (1 + cosine)/2 of a random direction follows a Beta law.
    half = (d - 1) / 2.0
    return float((n - 1) * np.log1p(-stats.beta.sf((1.0 + cosine) / 2.0, half, half)))


@measure(
    "sample",
    title="Near-duplicate share",
    says="Share of rows that have another with a cosine of 0.99 or more: nearly the same content, found together.",
    better="lower",
    row_share=True,
    null=lambda n, d: -float(np.expm1(compute_log_no_closer(NEAR_DUPLICATE, n, d))),
    formula="share of rows with max_j cos(x_i, x_j) ≥ 0.99 (threshold), over distinct directions",
    paper="Manku, Jain and Das Sarma 2007 (near-duplicates); threshold as in vecscope 0.2",
    blind=(
        "Equal rows, which are counted over all rows by their hashes (findings.counts), not on the sample. A sample "
        "of the rows misses pairs: with a tenth of them, nine in ten. Its interval is about the value at this n. In "
        "narrow spaces 0.99 is a common cosine."
    ),
    wrong="Equal rows kept, as in vecscope 0.2: they count as near-duplicates too.",
    **SHARED | {"note": describe_directions},
)
def near_duplicate_share(p: Points, threshold: float = NEAR_DUPLICATE) -> float:
    """Share of the distinct unit rows whose nearest neighbour has at least this cosine."""
    directions = p.unit.distinct
    if directions.n < 2:
        raise Undefined("needs two rows that point in different directions")
    return float(np.mean(to_cosines(directions.neighbours.distance[:, 0]) >= threshold))
