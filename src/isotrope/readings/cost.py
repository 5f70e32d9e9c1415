"""How long the readings of one layer take, before they are taken: for the progress bar and for --dry-run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from isotrope.compute.threads import limit_threads
from isotrope.measures.record import Measure
from isotrope.readings.intervals import GROUPS, KEPT_BYTES


class _Cost(NamedTuple):
    """Seconds of one core for a layer of 20,000 sampled rows of 384 dimensions, with intervals, and how they grow."""

    seconds: float
    with_rows: float
    with_width: float


#: Measured where the product below took `_PRODUCT` seconds of one core; without intervals it is about a third.
_COSTS = {
    "moments": _Cost(0.42, 0.1, 1.8),
    "tokens": _Cost(0.16, 0.7, 0.5),
    "sequences": _Cost(0.04, 1.0, 0.5),
    "spectra": _Cost(0.04, 1.0, 0.5),
    "rows": _Cost(25.0, 1.2, 0.9),
    "pairs": _Cost(12.0, 2.0, 0.2),
    "neighbours": _Cost(18.0, 1.6, 0.8),
    "search": _Cost(10.0, 1.6, 0.8),
    "queries": _Cost(4.0, 1.0, 0.8),
    "texts": _Cost(0.2, 1.0, 0.5),
    "additive": _Cost(35.0, 1.0, 0.8),
    "product": _Cost(17.0, 1.2, 0.8),
}
_PRODUCT = 0.017

#: Sampled rows of the shape above, and its width.
_ROWS, _WIDTH = 20_000, 384

#: How much of the cores' time layers that are read side by side make use of.
_TOGETHER = 0.7

#: Scatter matrices held at once besides those of the groups: the whole, one group, the rest, its spectrum, the null.
_MATRICES = 6

#: Copies of the sampled rows that measures of these hold: in order, as unit rows, distinct, centred, and the null's.
_COPIES = 8


def estimate_seconds(measures: Iterable[Measure], n: int, d: int) -> dict[tuple[Any, ...], float]:
    """About how long each kind of statistic takes for one layer, of which n rows of d dimensions are sampled.

    >>> from isotrope.measures.selection import select
    >>> found = estimate_seconds(select("moments,quantized"), 20_000, 768)
    >>> [kind[0] for kind in found], sum(found.values()) > 1
    (['moments', 'cells', 'cells'], True)
    """
    kinds: dict[tuple[Any, ...], set[str]] = {}
    for m in measures:
        if m.needs != "layers":
            kinds.setdefault(m.statistic, set()).add(_find_cost(m))
    return {
        kind: measure_slowness() * sum(_scale_cost(_COSTS[name], n, d) for name in names)
        for kind, names in kinds.items()
    }


def count_parallel_layers(d: int) -> int:
    """How many layers to read at once: as many as there are cores, while their matrices fit into about 2 GB."""
    return max(1, min(os.cpu_count() or 1, int(2e9 / _bytes_of_matrices(d))))


def estimate_memory(measures: Iterable[Measure], n: int, d: int, types: int) -> int:
    """About how many bytes the readings of one layer take at their peak, besides its statistics.

    n: sampled rows of d dimensions. types: token types of the layer.

    >>> from isotrope.measures.selection import select
    >>> estimate_memory(select("moments"), 300, 4_096, 0) < estimate_memory(select("all"), 300, 4_096, 0) < 2e9
    True
    """
    needs = {m.needs for m in measures}
    compared = 8 * _COPIES * n * d if needs & {"sample", "cells"} else 0
    tokens = 2 * 12 * types * d if "tokens" in needs else 0
    return _bytes_of_matrices(d) + compared + tokens


def _bytes_of_matrices(d: int) -> int:
    """Scatter matrices that the intervals and spectra of one layer hold at once."""
    kept = GROUPS if 8 * GROUPS * d * d <= KEPT_BYTES else 0
    return 8 * d * d * (kept + _MATRICES)


def estimate_seconds_after(measures: Sequence[Measure], n: int, d: int, layers: int) -> float:
    """About how long the readings of all layers take, after the pass over the input.

    The isotropic rows for the null values are read once, without intervals.
    """
    each = estimate_seconds(measures, n, d)
    once = sum(cost for kind, cost in each.items() if kind[0] in ("sample", "cells")) / 2
    return sum(each.values()) * layers / min(layers, count_parallel_layers(d)) / _TOGETHER + once


def format_duration(of: float) -> str:
    """A time in words.

    >>> format_duration(75), format_duration(600), format_duration(9000)
    ('75 seconds', '10 minutes', '2.5 hours')
    """
    if of < 90:
        return f"{of:.0f} seconds"
    return f"{of / 60:.0f} minutes" if of < 5400 else f"{of / 3600:.1f} hours"


def _find_cost(m: Measure) -> str:
    if m.needs == "cells":
        return str(m.parameters["kind"])
    if m.needs == "sample":
        return m.cost or (m.group if m.group in ("neighbours", "search") else "rows")
    return m.cost or m.needs


def _scale_cost(cost: _Cost, n: int, d: int) -> float:
    return float(cost.seconds * (max(n, 1) / _ROWS) ** cost.with_rows * (d / _WIDTH) ** cost.with_width)


@cache
def measure_slowness() -> float:
    """How much longer a product takes here than where the table was measured: the best of several."""
    a = np.random.default_rng(0).standard_normal((1024, 1024), dtype=np.float32)
    times = []
    with limit_threads():
        for _ in range(8):
            begin = time.perf_counter()
            a @ a.T
            times.append(time.perf_counter() - begin)
    return min(times) / _PRODUCT
