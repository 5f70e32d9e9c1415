"""Whether a few rows are among the nearest neighbours of very many."""

from __future__ import annotations

import math

import numpy as np

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Points

_K = 10


def _note(p: Points) -> str | None:
    repeated = p.n - p.unit.distinct.n
    return f"{repeated:,} rows point the same way as others and are left out" if repeated else None


@measure(
    "sample",
    group="neighbours",
    title="Hubness",
    says="How unequally rows occur as neighbours of others: near 0 equally, above 1 a few hubs are near to everything.",
    range=lambda n, d: (-math.sqrt(max(n, 2)), math.sqrt(max(n, 2))),
    better="lower",
    estimate=False,
    enough=lambda d: 1_000,
    note=_note,
    formula="skewness of N_k over rows, N_k = of how many rows a row is among the k = 10 nearest; distinct unit rows",
    paper="Radovanović, Nanopoulos and Ivanović 2010",
    blind=(
        "Which rows are hubs. It changes with n: compare at equal n. The strongest few hubs decide, and leaving rows "
        "out does not show how others would (79 to 100 of 100 intervals held), so it has no interval."
    ),
    wrong=(
        "Neighbours by raw distance, not by cosine (8.8 where unit rows give 0.33). Repeated rows kept: the first of "
        "many equal rows look like hubs."
    ),
    headline=3,
)
def hubness(p: Points, k: int = _K) -> float:
    """Skewness of how often each unit row is among the nearest neighbours of others."""
    directions = p.unit.distinct
    if directions.n <= k + 1:
        raise Undefined(f"needs more than {k + 1} rows that point in different directions, found {directions.n}")
    times = np.bincount(directions.neighbours.which[:, :k].ravel(), minlength=directions.n).astype(np.float64)
    apart = times - k  # every row has k neighbours, so that k is the mean
    spread = float(np.mean(apart**2))
    if spread == 0.0:
        raise Undefined("every row is a neighbour of equally many others, so the skewness is undefined")
    return float(np.mean(apart**3) / spread**1.5)
