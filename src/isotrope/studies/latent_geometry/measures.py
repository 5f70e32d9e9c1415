"""The measures of the latent-geometry paper on rows, as its authors computed them."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures import get
from isotrope.quantization.cells import Cells
from isotrope.statistics import Moments, Points, block
from isotrope.studies.latent_geometry.published import TABLE_2


def space_measures(rows: NDArray[np.floating[Any]], *, seed: int = 0) -> dict[str, float]:
    """All measures of Table 2 on rows (n, d), in their published variants; each quantizer is trained once.

    NaN where one is undefined, as for rows that noise has made too much alike to be told apart by a quantizer.
    """
    usable = block(rows)
    points = Points.of(usable)
    statistics: dict[Any, Any] = {"moments": Moments.of(usable), "sample": points}
    for kind in ("additive", "product"):
        with suppress(Undefined):
            statistics[kind] = Cells.of(points, kind, seed=seed)
    found = {}
    for name in TABLE_2:
        measure = get(name)
        statistic = statistics.get(measure.parameters["kind"] if measure.needs == "cells" else measure.needs)
        variant = "published" if "published" in measure.variants else "definition"
        found[name] = math.nan if statistic is None else measure(statistic, variant=variant)
    return found
