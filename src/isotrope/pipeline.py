"""From a source to findings: one pass over the rows, then the measures of every layer."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from isotrope.compute.threads import open_pool
from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.findings.reading import name_reading
from isotrope.layers import Layer
from isotrope.measures import GROUPS, Measure, select
from isotrope.measures.selection import check_no_images, select_variants
from isotrope.readings.cost import count_parallel_layers, estimate_seconds, estimate_seconds_after, format_duration
from isotrope.readings.layer_readings import read, read_across
from isotrope.readings.named_rows import ComparedRows, compare_rows, has_items, name_rows
from isotrope.readings.null import Nulls
from isotrope.readings.unusual_rows import UnusualRows
from isotrope.runs.retention import compute_tables
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Points, Summary, Wanted
from isotrope.storage.redaction import mask_facts
from isotrope.verdict.judge import judge

#: What is measured unless the user says otherwise: of models, and of vectors that someone already has.
DEFAULT_MEASURES = "moments,tokens,sequences"
DEFAULT_OF_VECTORS = "moments,search"

#: Called with what is going on, how much is done, and of how much (None where unknown): counts of things, or work as
#: floats, of which only the share means something.
Progress = Callable[[str, float, float | None], None]

#: Seconds of measuring after the pass that are announced.
_ANNOUNCED_SECONDS = 20.0

#: Measures across layers need this many.
_FEWEST_LAYERS = 3


@dataclass(frozen=True)
class SelectedMeasures:
    """What a scan computes, apart from what it reads.

    Args:
        measures: The measures, in the order of the readings.
        wanted: The statistics that they need.
        seed: Selects the sampled rows.
        named: Measures that were asked for by name; they have a reading even where they are undefined.
        default: Whether nothing was asked for: what the statistics do not allow is then left out.
    """

    measures: tuple[Measure, ...]
    wanted: Wanted
    seed: int
    named: frozenset[str] = frozenset()
    default: bool = False

    def select_measures(self, collection: Collection, layers: Sequence[Layer]) -> list[Measure]:
        """Select the measures that the statistics allow, and those that were named: vectors have no tokens."""
        kept = {name for summary in collection.summaries.values() for name in summary.parts()}
        missing = {"tokens"} - kept if "sequences" in kept else {"tokens", "sequences", "spectra"} - kept
        missing |= {"sample"} - kept if self.default else set()
        missing |= {"layers"} if len(layers) < _FEWEST_LAYERS else set()
        possible = [m for m in self.measures if m.needs not in missing or m.name in self.named]
        return possible or list(self.measures)


def resolve_measures(
    measures: str | list[str] | None,
    *,
    sample: int = 20_000,
    seed: int = 0,
    variant: str = "definition",
    vectors: bool = False,
) -> SelectedMeasures:
    """Resolve the names of measures and groups, and the statistics that they need.

    Args:
        measures: Names and groups, as a list or separated by commas; None for the default groups.
        sample: How many rows of each layer are sampled.
        seed: Selects the sampled rows.
        variant: Another definition that is computed beside the usual one, for the measures that have it.
        vectors: Whether the rows are vectors that someone already has: other groups by default, and equal rows are
            counted.
    """
    if sample < 0:
        raise InputError(f"the sample is {sample} rows, expected 0 or more.")
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    asked = name_default(vectors) if measures is None else measures
    chosen = select(asked)
    names = [part.strip() for part in (asked.split(",") if isinstance(asked, str) else asked)]
    named = select(single) if (single := [n for n in names if n and n not in (*GROUPS, "all")]) else []
    if across := [name for m in chosen for name in m.across]:
        chosen = select([*(m.name for m in chosen), *across])
    check_no_images(chosen)
    chosen += select_variants(chosen, variant)
    needs = {m.needs for m in chosen}
    wanted = Wanted(
        tokens="tokens" in needs,
        sequences=bool(needs & {"sequences", "spectra"}),
        sample=sample,
        seed=seed,
        duplicates=vectors,
    )
    return SelectedMeasures(tuple(chosen), wanted, seed, frozenset(m.name for m in named), measures is None)


def name_default(vectors: bool) -> str:
    """The groups that are measured where none was asked for."""
    return DEFAULT_OF_VECTORS if vectors else DEFAULT_MEASURES


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


def describe_settings(source: Source, options: SelectedMeasures) -> dict[str, Any]:
    """Describe what the numbers depend on, apart from the source itself."""
    return {
        "layers": source.layers,
        "measures": [name_reading(m.name, m.variant) for m in options.measures],
        "sample": options.wanted.sample,
        "seed": options.seed,
        "batch_rows": source.batch_rows,
        "rows_dtype": str(source.dtype),
        "engine": source.engine["name"],
    }


def compute_findings(collection: Collection, source: Source, options: SelectedMeasures, progress: Progress) -> Findings:
    """Compute all readings, tables and the verdict from statistics."""
    _check_rows(collection)
    nulls = Nulls()
    layers = [layer for layer in source.layers if any(key[1] == layer for key in collection.summaries)]
    groups: list[str | None] = [None, *collection.groups()]
    readings = []
    jobs = [(g, layer) for g in groups for layer in layers if g is None or (g, layer) in collection.summaries]
    unusual = UnusualRows(source.token_names)
    measures = options.select_measures(collection, layers)
    relative = [m for m in measures if m.relative and m.needs == "moments"]
    costs = estimate_seconds(measures, options.wanted.sample, source.width)
    whole, spent = sum(costs.values()) * len(jobs), 0.0

    def add_progress(cost: float) -> None:
        nonlocal spent
        with lock:
            spent += cost
            progress("measuring", min(spent, whole), whole)

    compared: list[ComparedRows | None] = []

    def read_layer(job: tuple[str | None, Layer]) -> tuple[Summary, list[Reading]]:
        group, layer = job
        summary = collection.layer(layer, group)
        is_compared = job == (None, layers[-1]) and _needs_comparison(source, measures, summary)
        found = read(
            summary,
            measures,
            layer=layer,
            group=group,
            seed=options.seed,
            nulls=nulls,
            done=lambda kind: add_progress(costs[kind]),
            examine=partial(_compare, compared, layer, options.seed) if is_compared else None,
        )
        return summary, found

    lock = threading.Lock()
    add_progress(0.0)
    collection.settle()
    # Layers side by side, each on one thread: threads within one small eigenvalue problem would wait for each other.
    with open_pool(count_parallel_layers(source.width)) as pool:
        for (group, layer), (summary, found) in zip(jobs, pool.map(read_layer, jobs), strict=True):
            if group is None:
                unusual.add(layer, summary, {m.name: nulls.value(m, summary) for m in relative})
            readings += found
    readings += read_across(readings, measures, options.seed)
    named = name_rows(compared[0] if compared else None, source, unusual.rows)
    findings = Findings(
        readings=readings,
        layers=layers,
        layer_names={str(k): v for k, v in source.layer_names.items()},
        source=mask_facts(source.describe()),
        counts=dict(collection.counts) | dict(unusual.counts) | named.counts,
        rows=named.rows,
        tables=compute_tables(collection, source, layers) | named.tables,
    )
    findings.verdict = judge(findings)
    return findings


def _needs_comparison(source: Source, measures: Sequence[Measure], summary: Summary) -> bool:
    """Whether sampled rows are compared with each other: they have names, or measures do it anyway."""
    return has_items(summary) and (source.has_names or any(m.group in ("search", "neighbours") for m in measures))


def _compare(compared: list[ComparedRows | None], layer: Layer, seed: int, points: Points) -> None:
    """Add what the neighbours of sampled rows tell of them."""
    compared.append(compare_rows(layer, points, seed))


def _check_rows(collection: Collection) -> None:
    """Refuse what is less than a space in every layer."""
    usable, left_out = collection.count_rows()
    most = max(usable.values(), default=0)
    if most < 2:
        bad = max(left_out.values(), default=0)
        besides = f" (besides {bad:,} of zeros, NaN or infinity)" if bad else ""
        raise InputError(f"{'one row' if most else 'no row'} has no geometry{besides}; give at least two.")
