"""How much of all search results a few rows take, and how many rows no search finds."""

from __future__ import annotations

import math

import numpy as np

from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import DISTINCT, NULL_ROWS, SHARED, find_nearest_directions
from isotrope.statistics import Points
from isotrope.statistics.neighbourhoods import K, count_occurrences

#: Share of the rows that count as hubs.
_TOP = 0.01


@measure(
    "sample",
    title="Hub share",
    says="Share of all neighbour lists that the 1 % of rows found most often fill: 0.01 evenly, near 1 a few fill all.",
    better="lower",
    null_rows=NULL_ROWS,
    formula="Σ N_k over the ⌈n/100⌉ rows of largest N_k, over nk; N_k: how often a row is among the k = 10 nearest",
    paper="Radovanović, Nanopoulos and Ivanović 2010 (N_k); Feldbauer et al. 2018 (hub occurrence)",
    blind=f"What the hubs are about. Its interval is about the value at this n: compare at equal n. {DISTINCT}",
    wrong="Repeated rows kept, as in vecscope 0.2: a row with ten copies looks like a hub, or hides one.",
    **SHARED,
)
def hub_share(p: Points, k: int = K) -> float:
    """Share of the neighbour slots that the most frequent hundredth of the rows holds."""
    times = np.sort(count_occurrences(find_nearest_directions(p, k).which, p.unit.distinct.n))
    top = math.ceil(_TOP * len(times))
    return float(times[-top:].sum() / times.sum())


@measure(
    "sample",
    title="Antihub share",
    says="Share of rows that are among the nearest neighbours of no other row: searches hardly ever find them.",
    better="lower",
    null_rows=NULL_ROWS,
    row_share=True,
    formula="share of rows with N_k = 0, N_k: of how many rows a row is among the k = 10 nearest",
    paper="Radovanović, Nanopoulos and Ivanović 2010",
    blind=f"Queries that are unlike the rows. Its interval is about the value at this n and k. {DISTINCT}",
    wrong="exp(−k) as its null value: that is right for lists drawn at random only, not for distances.",
    **SHARED,
)
def antihub_share(p: Points, k: int = K) -> float:
    """Share of the unit rows that are nobody's near neighbour."""
    return float(np.mean(count_occurrences(find_nearest_directions(p, k).which, p.unit.distinct.n) == 0))
