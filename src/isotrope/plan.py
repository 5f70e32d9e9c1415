"""What a scan would cost, before it starts: rows, layers, time, memory and disk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from isotrope.measures import Measure
from isotrope.readings.cost import count_parallel_layers, estimate_seconds_after
from isotrope.readings.cost import estimate_memory as estimate_measuring
from isotrope.report import tables as report_tables
from isotrope.runs.retention import count_kept_rows, estimate_bytes
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Wanted

#: Batches that are run to measure the rate.
_TIMED_BATCHES = 2

#: What Python and its libraries take, without and with a model.
_PROGRAM_BYTES = 210_000_000
_TORCH_BYTES = 300_000_000

#: What a drawn row, a token type and everything else take in the tables and the report of a run.
_DRAWN_BYTES, _TYPE_BYTES, _REPORT_BYTES = 100, 48, 350_000

#: Room of a sample's table, as a multiple of its rows.
_SAMPLE_ROOM = 1.25


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate. rows: of each layer. seconds: of the scan in one process. memory: bytes at its peak.

    disk: bytes that the run leaves. checkpoints: bytes besides them while it runs, if that takes long enough for one.
    """

    rows: int
    layers: int
    width: int
    seconds: float
    memory: int
    disk: int
    engine: str = "local"
    checkpoints: int = 0


def plan(
    source: Source, measures: Sequence[Measure], wanted: Wanted, *, report: bool = True, keep: str = "summary"
) -> Plan:
    """Measure the rate on the first batches and scale it up; nothing is written.

    Args:
        source: What would be read.
        measures: What would be measured.
        wanted: The statistics that this takes.
        report: Whether a report is made.
        keep: How much of the statistics stays on disk.
    """
    trial = Collection(wanted)
    begin = time.perf_counter()
    deque(islice(source.map(trial.update), _TIMED_BATCHES * source.parts), maxlen=0)
    seconds = time.perf_counter() - begin
    (rows, types), timed = _rows_and_types(source, trial), max(1, _count_rows(trial))
    layers, d = len(source.layers), source.width
    parts = layers * max(1, len(trial.groups()))
    types = types if wanted.tokens else 0
    sampled = min(wanted.sample, rows)
    statistics = parts * (8 * d * d + 12 * d * types + 4 * d * sampled)
    after = estimate_seconds_after(measures, sampled, d, parts)
    # Without --keep all, the report is computed from compact statistics, whether they stay or not.
    in_memory = "all" if keep == "all" else "summary"
    kept = estimate_bytes(d, layers, types=types, sample=sampled, keep=in_memory, groups=parts // layers)
    maps = report_tables.estimate_seconds(layers, d) if report else 0.0
    weights = 4 * source.describe().get("parameters", 0)
    return Plan(
        rows=rows,
        layers=layers,
        width=d,
        seconds=seconds / timed * rows + after + maps,
        memory=_peak(measures, _Shape(parts, sampled, d, types, _sample_bytes(trial)), kept=kept if report else None)
        + int(3 * weights + _PROGRAM_BYTES + (_TORCH_BYTES if weights else 0)),
        disk=_disk(layers, d, parts, types, sampled, keep),
        # The last checkpoint stays until the next one is whole.
        checkpoints=int(2 * statistics),
    )


def _disk(layers: int, d: int, parts: int, types: int, sample: int, keep: str) -> int:
    """About how many bytes a run leaves: its statistics, its tables and its report."""
    kept = estimate_bytes(d, layers, types=types, sample=sample, keep=keep, groups=parts // layers)
    points = min(layers, 3) * min(sample, count_kept_rows(sample, layers, d)) + max(layers - 3, 0) * min(sample, 1_500)
    return int(kept + _DRAWN_BYTES * points + _TYPE_BYTES * parts * types + _REPORT_BYTES)


class _Shape(NamedTuple):
    """Layers (of all groups), sampled rows of each, their width, token types, and bytes of a sampled number."""

    layers: int
    sampled: int
    width: int
    types: int
    itemsize: int


def _peak(measures: Sequence[Measure], shape: _Shape, *, kept: int | None) -> int:
    """Bytes at the peak of a scan, besides the program: while it measures, writes the run or computes the report.

    kept: bytes of the statistics that the report is computed from; None where there is no report.
    """
    layers, n, d, types, itemsize = shape
    rows = itemsize * n * d
    tables = 8 * d * d + (8 + itemsize) * d * types
    collected = layers * (tables + int(_SAMPLE_ROOM * rows))
    measuring = collected + min(layers, count_parallel_layers(d)) * estimate_measuring(measures, n, d, types)
    writing = collected + layers * (tables + rows)
    reporting = 0 if kept is None else kept + int(_SAMPLE_ROOM * rows) + report_tables.estimate_memory(n, d)
    return max(measuring, writing, reporting)


def _sample_bytes(trial: Collection) -> int:
    """Bytes of one number of the sample."""
    samples = (s.sample for s in trial.summaries.values() if s.sample is not None)
    return max((s.values.dtype.itemsize for s in samples), default=4)


def _count_rows(trial: Collection) -> int:
    """Rows of one layer that the trial read, whether they could be used or not."""
    usable, left_out = trial.count_rows()
    return max((usable + left_out).values(), default=0)


def _rows_and_types(source: Source, trial: Collection) -> tuple[int, int]:
    """Rows and token types of each layer: known for vectors and pooled texts, else estimated from what was read."""
    types = max((len(s.tokens) for s in trial.summaries.values() if s.tokens is not None), default=0)
    return source.estimate_rows(rows=_count_rows(trial), types=types, units=max(1, trial.counts[source.unit]))
