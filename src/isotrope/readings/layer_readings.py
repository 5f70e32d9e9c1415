"""The readings of one layer, with intervals, null values and what to know about them; the values of rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from isotrope.errors import InputError, Undefined
from isotrope.findings import Reading
from isotrope.measures.drift_correlation import LayerReadings
from isotrope.measures.record import Measure
from isotrope.measures.selection import check_no_images, select, select_variants
from isotrope.quantization.cells import Cells
from isotrope.readings.intervals import NONE, JackknifeGroups, compute_intervals
from isotrope.readings.null import Nulls
from isotrope.readings.queries import NO_SEARCH, SearchInputs
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import (
    Moments,
    MomentsAndSample,
    Points,
    QueriedPoints,
    SequenceStatistics,
    Summary,
    TextLengths,
    TokenStatistics,
)

#: Why a statistic is missing, where it was asked for.
_MISSING = {
    "tokens": "these rows have no token types (vectors, pooled rows, frames of sound, spelled words, several tokens)",
    "sequences": "these rows do not form sequences (vectors, or pooled rows)",
    "spectra": "these rows do not form sequences (vectors, or pooled rows)",
    "sample": "no sample of the rows was kept (--sample 0)",
    "cells": "no sample of the rows was kept (--sample 0)",
    "queries": "there are no queries (--queries FILE)",
    "texts": "the texts of the rows are not known (--text-column)",
}

#: Statistics of sampled rows, by what they are called there.
_OF_GROUPS = {"sample": "points", "queries": "queried", "texts": "texts"}

#: Why there is no interval, where few rows hold most of what is averaged.
_HEAVY_TAILS = "no interval: the rows' lengths have heavy tails, so that a few rows decide the average"


class Subject(NamedTuple):
    """What a reading is of: a layer, a group (None for all rows), and a sample by its seed."""

    layer: int | str
    group: str | None
    seed: int

    def start_reading(self, m: Measure, n: int) -> Reading:
        """Start a reading of a measure, without a value."""
        return Reading(self.layer, m.name, math.nan, n=n, variant=m.variant, seed=self.seed, group=self.group)


def read(
    summary: Summary,
    measures: Sequence[Measure],
    subject: Subject,
    *,
    nulls: Nulls,
    search: SearchInputs = NO_SEARCH,
    done: Callable[[tuple[Any, ...]], None] = lambda kind: None,
    examine: Callable[[Points], None] | None = None,
) -> list[Reading]:
    """The readings of one layer's statistics.

    Args:
        summary: The statistics.
        measures: What is read.
        subject: What they are readings of.
        nulls: Null values.
        search: Queries that search the rows, and the lengths of their texts.
        done: Called with each kind of statistic that was read.
        examine: Called with the sampled rows, whose neighbours are known by then where a measure needed them.
    """
    kinds = dict.fromkeys(m.statistic for m in measures if m.needs != "layers")
    kept = [kind[0] for kind in kinds if getattr(summary, kind[0], None) is not None]
    groups = None if summary.sample is None else JackknifeGroups(summary.sample, kept, search)
    found: dict[tuple[str, str], Reading] = {}
    for kind in kinds:
        wanted = [m for m in measures if m.statistic == kind]
        of, missing = find_statistic(kind, summary, groups, subject.seed)
        for m in wanted:
            start = subject.start_reading(m, _count(of))
            found[m.name, m.variant] = replace(start, reason=missing) if of is None else _read_value(m, of, start)
        defined = [m for m in wanted if m.estimate and math.isfinite(found[m.name, m.variant].value)]
        ends = [NONE] * len(defined)
        if groups is not None:
            cells = of if kind[0] == "cells" else None
            ends = compute_intervals(defined, [found[m.name, m.variant].value for m in defined], groups, kind[0], cells)
        for m, (low, high) in zip(defined, ends, strict=True):
            found[m.name, m.variant] = replace(found[m.name, m.variant], low=low, high=high)
        for m in wanted:
            if math.isfinite(found[m.name, m.variant].value):
                null = nulls.value(m, summary, search.queries)
                note = _note(m, found[m.name, m.variant], summary, of)
                if m in defined and groups is not None and math.isinf(groups.widening(m)):
                    note = "; ".join(filter(None, [note, _HEAVY_TAILS]))
                found[m.name, m.variant] = replace(found[m.name, m.variant], null=null, note=note)
        done(kind)
    if examine is not None and groups is not None:
        examine(groups.points)
    return [found[m.name, m.variant] for m in measures if (m.name, m.variant) in found]


def find_statistic(
    kind: tuple[Any, ...], summary: Summary, groups: JackknifeGroups | None, seed: int
) -> tuple[Any, str | None]:
    """What measures of one kind are taken from, None with the reason where it is not there."""
    need, *settings = kind
    found, missing = getattr(summary, need, None), _MISSING.get(need)
    if need == "spectra" and summary.sample is not None and summary.sequences is not None:
        found = summary.sample.spectra()
    if need in _OF_GROUPS and groups is not None:
        found = getattr(groups, _OF_GROUPS[need])
    if need == "cells" and groups is not None:
        try:
            found = Cells.of(groups.points, seed=seed, **dict(settings))
        except Undefined as error:
            missing = str(error)
    return found, missing


def _read_value(m: Measure, statistic: Any, start: Reading) -> Reading:
    """A reading with its value, or with the reason why there is none."""
    try:
        value = m.value(statistic)
    except Undefined as error:
        return replace(start, reason=str(error))
    return replace(start, value=value) if math.isfinite(value) else replace(start, reason="the value is not finite")


def _count(statistic: Any) -> int:
    """Rows for moments, tokens and samples, queries, sequences for the others; 0 without a statistic."""
    if statistic is None:
        return 0
    if isinstance(statistic, Moments | Points | Cells | QueriedPoints | TextLengths):
        return statistic.n
    if isinstance(statistic, TokenStatistics):
        return int(statistic.n.sum())
    return statistic.count if isinstance(statistic, SequenceStatistics) else len(statistic)


def _note(m: Measure, r: Reading, summary: Summary, statistic: Any) -> str | None:
    notes = []
    moments = summary.moments
    if m.enough is not None and r.n < (enough := m.enough(moments.d)):
        notes.append(f"only {r.n:,} rows, which decide the value as much as the space does: take {enough:,} or more")
    elif m.needs == "moments" and moments.n <= moments.d and "rotation" in m.invariant and m.estimate:
        notes.append(f"only {moments.n:,} rows for {moments.d:,} dimensions: take more rows than dimensions")
    if math.isfinite(r.low) and not r.low <= r.value <= r.high:
        notes.append("biased by the number of rows: the interval is where the value would settle with more")
    if m.fine_spectrum and moments.resolution > 1e-10 and moments.unresolved > moments.d / 100:
        notes.append(f"{moments.unresolved} directions are too weak for float32: use --precision exact")
    if m.note is not None and (said := m.note(statistic)):
        notes.append(said)
    if m.needs in ("sample", "cells") and r.n < moments.n:
        notes.append(f"on {r.n:,} sampled rows of {moments.n:,}")
    everything = summary.sequences.count if summary.sequences is not None else 0
    if m.needs == "spectra" and r.n < everything:
        notes.append(f"on {r.n:,} sampled sequences of {everything:,}")
    return "; ".join(notes) or None


def read_across(readings: Sequence[Reading], measures: Sequence[Measure], seed: int) -> list[Reading]:
    """Compute the readings across layers, for each group, from the readings of the layers that their records name."""
    found = []
    for group in dict.fromkeys(r.group for r in readings):
        for m in measures:
            if m.needs == "layers":
                of = [
                    [r.value for r in readings if (r.measure, r.group, r.variant) == (name, group, "definition")]
                    for name in m.across
                ]
                layers = LayerReadings(*(np.array(values, dtype=np.float64) for values in of))
                start = Reading(None, m.name, math.nan, n=len(of[0]), seed=seed, group=group)
                found.append(_read_value(m, layers, start))
    return found


def measure(
    X: Any,
    names: str | list[str] | None = None,
    *,
    sample: int = 20_000,
    seed: int = 0,
    variant: str = "definition",
) -> dict[str, float]:
    """Measure rows in memory; a measure that is undefined on them is NaN.

    Args:
        X: The rows, shape (n, d).
        names: Measures or groups; None for the measures of the moments.
        sample: How many rows are compared with each other at most, for measures that compare rows.
        seed: Selects these rows.
        variant: "published" for the definition of the paper's own code, of each measure that has one; the others keep
            their definition.

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
    asked = () if names is None else names.split(",") if isinstance(names, str) else names
    named = {name.strip() for name in asked}
    # A group leaves out what rows alone do not give; a measure that is named is refused below.
    chosen = [m for m in chosen if m.needs not in ("queries", "texts") or m.name in named]
    chosen = list({m.name: m for m in (*chosen, *select_variants(chosen, variant))}.values())
    if other := [m for m in chosen if m.needs not in ("moments", "sample", "cells")]:
        raise InputError(f"{other[0].name} cannot be taken from rows alone: it needs {other[0].needs}; use scan.")
    source = ArraySource(X, exact=True)
    size = sample if any(m.needs != "moments" for m in chosen) else 1  # the smallest possible sample
    found = source.reduce(MomentsAndSample.empty_for(source.width, size, seed))
    summary, groups = Summary(found.moments, sample=found.sample), JackknifeGroups(found.sample, ())
    statistics = {kind: find_statistic(kind, summary, groups, seed)[0] for kind in {m.statistic for m in chosen}}
    return {m.name: math.nan if statistics[m.statistic] is None else m(statistics[m.statistic]) for m in chosen}
