"""From a source to findings: one pass over the rows, then the measures of every layer."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isotrope.compute.threads import open_pool
from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.findings.reading import name_reading
from isotrope.layers import Layer
from isotrope.measures import Measure
from isotrope.readings.cost import count_parallel_layers, estimate_seconds, estimate_seconds_after, format_duration
from isotrope.readings.layer_readings import Subject, read, read_across
from isotrope.readings.named_rows import ComparedRows, compare_rows, has_items, name_rows
from isotrope.readings.null import Nulls
from isotrope.readings.queries import Queries, SearchInputs
from isotrope.readings.selected_measures import SelectedMeasures
from isotrope.readings.unusual_rows import UnusualRows
from isotrope.runs.retention import compute_tables
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Points, Summary
from isotrope.storage.redaction import mask_facts
from isotrope.verdict.judge import judge

#: Called with what is going on, how much is done, and of how much (None where unknown): counts of things, or work as
#: floats, of which only the share means something.
Progress = Callable[[str, float, float | None], None]

#: Seconds of measuring after the pass that are announced.
_ANNOUNCED_SECONDS = 20.0


def collect(
    source: Source,
    options: SelectedMeasures,
    collection: Collection,
    *,
    save: Callable[[Collection], None] | None = None,
    every: float = 60.0,
    progress: Progress,
) -> Collection:
    """Add all rows of a source to a collection, in one pass.

    Args:
        source: What is read.
        options: What is computed, which decides what is announced.
        collection: Empty, or what an earlier pass had collected when it was stopped.
        save: Called with the collection from time to time, to write a checkpoint.
        every: Seconds between these calls.
        progress: Called with what is going on, how much is done, and of how much.
    """
    reading = f"reading {source.unit}{_announce_measuring(source, options)}"
    announced = source.with_progress(lambda done, total: progress(reading, done, total))
    found = announced.reduce(collection, keep=save, every=every)
    release_memory()
    return found


def release_memory() -> None:
    """Return what was freed to the system, where the C library can (glibc).

    Otherwise it may keep some megabytes, to which what follows a pass is added.

    >>> release_memory()
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _announce_measuring(source: Source, options: SelectedMeasures) -> str:
    """Say what comes after the pass over the input, where it takes long."""
    rows = source.total if source.unit == "rows" else None
    sampled = options.wanted.sample if rows is None else min(options.wanted.sample, rows)
    after = estimate_seconds_after(options.measures, sampled, source.width, len(source.layers))
    return f", then about {format_duration(after)} of measuring" if after > _ANNOUNCED_SECONDS else ""


def describe_settings(source: Source, options: SelectedMeasures, queries: Queries | None = None) -> dict[str, Any]:
    """Describe what the numbers depend on, apart from the source itself."""
    asked = {} if queries is None else {"queries": queries.facts}
    return asked | {
        "layers": source.layers,
        "measures": [name_reading(m.name, m.variant) for m in options.measures],
        "sample": options.wanted.sample,
        "seed": options.seed,
        "batch_rows": source.batch_rows,
        "rows_dtype": str(source.dtype),
        "engine": source.engine["name"],
    }


def compute_findings(
    collection: Collection,
    source: Source,
    options: SelectedMeasures,
    progress: Progress,
    queries: Queries | None = None,
) -> Findings:
    """Compute all readings, tables and the verdict from statistics.

    Args:
        collection: The statistics.
        source: What was read.
        options: What is computed.
        progress: Called with what is going on, how much is done, and of how much.
        queries: Queries that search the rows, None where there are none.
    """
    _check_rows(collection)
    layers = [layer for layer in source.layers if any(key[1] == layer for key in collection.summaries)]
    texts = _measure_texts(collection, layers, source) if any(m.needs == "texts" for m in options.measures) else {}
    measures = options.select_measures(collection, layers, texts=bool(texts))
    relative = [m for m in measures if m.relative and m.needs == "moments"]
    unusual = UnusualRows(source.token_names)
    reader = _LayerReader(collection, measures, options.seed, queries, texts)
    if source.has_names or any(m.group in ("search", "neighbours") for m in measures):
        reader.compared_layer = layers[-1]
    groups: list[str | None] = [None, *collection.groups()]
    jobs = [(g, layer) for g in groups for layer in layers if g is None or (g, layer) in collection.summaries]
    costs = estimate_seconds(measures, options.wanted.sample, source.width)
    spent = _Spent(sum(costs.values()) * len(jobs), progress)
    collection.settle()
    readings = []
    # Layers side by side, each on one thread: threads within one small eigenvalue problem would wait for each other.
    with open_pool(count_parallel_layers(source.width)) as pool:
        found_by_job = pool.map(lambda job: reader.read(*job, done=lambda kind: spent.add(costs[kind])), jobs)
        for (group, layer), (summary, found) in zip(jobs, found_by_job, strict=True):
            if group is None:
                unusual.add(layer, summary, {m.name: reader.nulls.value(m, summary) for m in relative})
            readings += found
    readings += read_across(readings, measures, options.seed)
    named = name_rows(reader.compared, source, unusual.rows)
    findings = Findings(
        readings=readings,
        layers=layers,
        layer_names={str(k): v for k, v in source.layer_names.items()},
        source=mask_facts(source.describe()) | ({} if queries is None else {"queries": queries.facts}),
        counts=dict(collection.counts) | dict(unusual.counts) | named.counts,
        rows=named.rows,
        tables=compute_tables(collection, source, layers) | named.tables,
    )
    findings.verdict = judge(findings)
    return findings


@dataclass(eq=False)
class _LayerReader:
    """Reads one layer of one group at a time, and compares the sampled rows of one layer with each other.

    texts: characters of each text by row number. compared_layer: the layer whose rows are compared, None for none.
    compared: what the comparison found, once that layer was read.
    """

    collection: Collection
    measures: Sequence[Measure]
    seed: int
    queries: Queries | None
    texts: Mapping[int, int]
    compared_layer: Layer | None = None
    compared: ComparedRows | None = None
    nulls: Nulls = field(default_factory=Nulls)

    def read(
        self, group: str | None, layer: Layer, *, done: Callable[[tuple[Any, ...]], None]
    ) -> tuple[Summary, list[Reading]]:
        summary = self.collection.layer(layer, group)
        # Queries search all rows, not those of one group.
        measures = [m for m in self.measures if m.needs != "queries" or group is None]
        sampled = None if self.queries is None or group is not None else self.queries.find_sample(layer)
        is_compared = group is None and layer == self.compared_layer and has_items(summary)
        found = read(
            summary,
            measures,
            Subject(layer, group, self.seed),
            nulls=self.nulls,
            search=SearchInputs(sampled, self.texts),
            done=done,
            examine=self._compare if is_compared else None,
        )
        return summary, found

    def _compare(self, points: Points) -> None:
        assert self.compared_layer is not None
        self.compared = compare_rows(self.compared_layer, points, self.seed)


class _Spent:
    """Adds up the costs of what was read, from several threads, and reports their share of the whole."""

    def __init__(self, whole: float, progress: Progress) -> None:
        self._whole, self._progress = whole, progress
        self._lock, self._spent = threading.Lock(), 0.0
        self.add(0.0)

    def add(self, cost: float) -> None:
        with self._lock:
            self._spent += cost
            self._progress("measuring", min(self._spent, self._whole), self._whole)


def _measure_texts(collection: Collection, layers: Sequence[Layer], source: Source) -> Mapping[int, int]:
    """Measure the texts of all sampled rows that are whole texts, in characters, by row number."""
    summary = collection.layer(layers[-1])
    if summary.sample is None or not has_items(summary):
        return {}
    return source.measure_texts(summary.sample.rows.sequence)


def _check_rows(collection: Collection) -> None:
    """Refuse what is less than a space in every layer."""
    usable, left_out = collection.count_rows()
    most = max(usable.values(), default=0)
    if most < 2:
        bad = max(left_out.values(), default=0)
        besides = f" (besides {bad:,} of zeros, NaN or infinity)" if bad else ""
        raise InputError(f"{'one row' if most else 'no row'} has no geometry{besides}; give at least two.")
