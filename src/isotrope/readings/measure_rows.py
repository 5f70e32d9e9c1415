"""Measures of rows in memory, without a scan."""

from __future__ import annotations

import math
from typing import Any

from isotrope.errors import InputError
from isotrope.measures.selection import check_no_images, select
from isotrope.readings.intervals import JackknifeGroups
from isotrope.readings.layer_readings import find_statistic
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import MomentsAndSample, Summary


def measure(X: Any, names: str | list[str] | None = None, *, sample: int = 20_000, seed: int = 0) -> dict[str, float]:
    """Measure rows in memory; a measure that is undefined on them is NaN.

    Args:
        X: The rows, shape (n, d).
        names: Measures or groups; None for the measures of the moments.
        sample: How many rows are compared with each other at most, for measures that compare rows.
        seed: Selects these rows.

    Returns:
        The value of each measure, by the name that was asked for.

    Examples:
        >>> import numpy as np
        >>> measure(np.eye(3), ["mean_cosine", "rbf_distance"])
        {'mean_cosine': 0.0, 'rbf_distance': -4.0...}
    """
    chosen = select("moments" if names is None else names)
    if names is None:
        chosen = [m for m in chosen if m.needs == "moments"]
    check_no_images(chosen)
    if other := [m for m in chosen if m.needs not in ("moments", "sample", "cells")]:
        raise InputError(f"{other[0].name} cannot be taken from rows alone: it needs {other[0].needs}; use scan.")
    source = ArraySource(X, exact=True)
    size = sample if any(m.needs != "moments" for m in chosen) else 1  # the smallest sample that there is
    found = source.reduce(MomentsAndSample.empty_for(source.width, size, seed))
    summary, groups = Summary(found.moments, sample=found.sample), JackknifeGroups(found.sample, ())
    statistics = {kind: find_statistic(kind, summary, groups, seed)[0] for kind in {m.statistic for m in chosen}}
    return {m.name: math.nan if statistics[m.statistic] is None else m(statistics[m.statistic]) for m in chosen}
