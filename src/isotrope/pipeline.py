"""scan(): source to statistics to measures to findings. The only file that knows every stage."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.compute.memory import release_memory
from isotrope.compute.threads import open_pool
from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.layers import Layer
from isotrope.measures import GROUPS, Measure, select
from isotrope.readings.cost import duration, seconds, seconds_after, side_by_side
from isotrope.readings.intervals import Groups
from isotrope.readings.layer_readings import Nulls, read, read_across, statistic
from isotrope.readings.unusual_rows import UnusualRows
from isotrope.report import add_report
from isotrope.runs import checkpoint as checkpoints
from isotrope.runs.retention import check_keep
from isotrope.runs.run import Run
from isotrope.runs.tables import tables
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Collection, MomentsAndSample, Summary, Wanted
from isotrope.storage.provenance import begin, provenance
from isotrope.storage.redaction import masked_facts
from isotrope.verdict.judge import judge

if TYPE_CHECKING:
    from isotrope.sources.models.load import Loaded

#: What is measured unless the user says otherwise.
DEFAULT_MEASURES = "moments,tokens,sequences"

#: Called with what is going on, how much is done, and of how much (None where unknown): counts of things, or work as
#: floats, of which only the share means something.
Progress = Callable[[str, float, float | None], None]


#: Seconds of measuring after the pass that are announced.
_WORTH_A_WORD = 20.0


#: Measures across layers need this many.
_FEWEST_LAYERS = 3


@dataclass(frozen=True)
class Options:
    """What a scan is asked to do, apart from what it reads.

    named: measures that were asked for by name and not as part of a group; they are read even where they are undefined.
    """

    measures: tuple[Measure, ...]
    wanted: Wanted
    seed: int
    named: frozenset[str] = frozenset()

    def measures_of(self, collection: Collection, layers: Sequence[Layer]) -> list[Measure]:
        """The measures that such statistics allow, and those that were named: vectors have no tokens to measure."""
        kept = {name for summary in collection.summaries.values() for name in summary.parts()}
        missing = {"tokens"} - kept if "sequences" in kept else {"tokens", "sequences", "spectra"} - kept
        missing |= {"layers"} if len(layers) < _FEWEST_LAYERS else set()
        possible = [m for m in self.measures if m.needs not in missing or m.name in self.named]
        return possible or list(self.measures)


def scan(
    *,
    model: str | Path | Loaded | None = None,
    text: str | Path | Sequence[Any] | None = None,
    vectors: Any = None,
    layers: str | int | Sequence[int | str] = "all",
    measures: str | list[str] | None = None,
    pooling: str | None = None,
    column: str | None = None,
    split: str | None = None,
    unit: str = "line",
    group_by: str | None = None,
    special_tokens: str = "keep",
    revision: str | None = None,
    gguf_file: str | None = None,
    hooks: str | None = None,
    trust_remote_code: bool = False,
    precision: str | None = None,
    sample: int = 20_000,
    seed: int = 0,
    batch_size: int | None = None,
    max_length: int | None = None,
    device: str = "auto",
    bad_files: str = "stop",
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    gpus_per_worker: float = 0.0,
    output: str | Path | None = None,
    resume: bool = False,
    keep: str = "summary",
    checkpoint_every: float = 60.0,
    progress: Progress | None = None,
) -> Findings:
    """Measure every layer of a model over a text, or vectors that are there already, in one pass.

    model: hub id, folder, GGUF or ONNX file; None for the embedded default. text: file, folder, dataset id, list of
    strings, "-" for standard input; None for the Python manual. For a model of images or sounds it is these, as a file,
    folder, parquet file, dataset id or list. hooks: modules whose outputs are the layers, such as "blocks.*". vectors:
    array, file, list of files or folder, instead of model and text. precision: "fast" (float32 products) or "exact"
    (float64 throughout); None is exact for vectors and fast for models. bad_files: "stop" at a file of vectors that
    cannot be read, or "skip" it and say which; on a cluster, any shard of the vectors. engine: "local", or "ray" for a
    cluster, with address, workers and gpus_per_worker, see `isotrope.engines.engine`. output: a run folder to write.
    keep: how much of the statistics stays in it: "none" (findings, tables and the report only), "summary" (compact, for
    all commands that read runs) or "all" (exact, and runs can be merged).

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(500, 8)) + 3.0
    >>> findings = scan(vectors=rows, measures="mean_cosine")
    >>> findings.verdict.word
    'collapsed'
    """
    reading = Input(
        model=model,
        text=text,
        vectors=vectors,
        layers=layers,
        pooling=pooling,
        column=column,
        split=split,
        unit=unit,
        group_by=group_by,
        special_tokens=special_tokens,
        revision=revision,
        gguf_file=gguf_file,
        hooks=hooks,
        trust_remote_code=trust_remote_code,
        precision=precision,
        batch_size=batch_size,
        max_length=max_length,
        device=device,
        bad_files=bad_files,
    )
    where = Engine(engine=engine, address=address, workers=workers, gpus_per_worker=gpus_per_worker)
    options = choose(measures, sample=sample, seed=seed)
    check_keep(keep)
    if resume and output is None:
        raise InputError("there is nothing to resume without a run folder; name it as the output.")
    run = Run(output) if output is not None else None
    with nullcontext() if run is None else run.held(resume=resume), where.open(reading) as source:
        return scan_source(
            source, options, run=run, resume=resume, keep=keep, checkpoint_every=checkpoint_every, progress=progress
        )


def choose(measures: str | list[str] | None, *, sample: int = 20_000, seed: int = 0) -> Options:
    """The measures asked for and the statistics they need."""
    if sample < 0:
        raise InputError(f"the sample is {sample} rows, expected 0 or more.")
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    asked = DEFAULT_MEASURES if measures is None else measures
    chosen = select(asked)
    names = [part.strip() for part in (asked.split(",") if isinstance(asked, str) else asked)]
    named = select(single) if (single := [n for n in names if n and n not in (*GROUPS, "all")]) else []
    if any(m.needs == "layers" for m in chosen):  # they are made of these two
        chosen = select([*(m.name for m in chosen), "mean_cosine", "drift_norm"])
    _refuse_images(chosen)
    needs = {m.needs for m in chosen}
    wanted = Wanted(
        tokens="tokens" in needs,
        sequences=bool(needs & {"sequences", "spectra"}),
        sample=sample,
        seed=seed,
    )
    return Options(tuple(chosen), wanted, seed, frozenset(m.name for m in named))


def _refuse_images(chosen: list[Measure]) -> None:
    for m in chosen:
        if m.needs == "image":
            raise InputError(
                f"{m.name} compares rows with their image under a repair, and there is none here; "
                f"call isotrope.measures.{m.name}(X, Z)."
            )


def scan_source(
    source: Source,
    options: Options,
    *,
    run: Run | None = None,
    resume: bool = False,
    keep: str = "summary",
    checkpoint_every: float = 60.0,
    progress: Progress | None = None,
) -> Findings:
    """Run a source through all stages; with a run folder, write it, keeping checkpoints on the way."""
    if not checkpoint_every >= 0:
        raise InputError(f"checkpoints every {checkpoint_every} seconds are not possible; give 0 or more.")
    started = begin()
    task = checkpoints.task_of(source, _settings(source, options))
    collection = Collection(options.wanted)
    if run is not None and resume:
        if run.finished:
            return _report(run, checkpoints.finished(run, task), keep, progress)
        collection = checkpoints.resumed(run, task, options.wanted)
    resumed = collection.batches
    told = progress or (lambda *_: None)
    reading = f"reading {source.unit}{_and_then(source, options)}"
    collection = source.with_progress(lambda done, total: told(reading, done, total)).reduce(
        collection,
        keep=None if run is None else lambda now: checkpoints.keep(run, task, now),
        every=checkpoint_every,
    )
    release_memory()
    findings = find(collection, source, options, told)
    findings.provenance = provenance(started, task["settings"], resumed) | {"engine": source.engine}
    if run is not None:
        told("writing the run", 0, None)
        checkpoints.save(run, findings, collection, keep)
        del collection  # the report reads what was written, and needs the room
        release_memory()
        _report(run, findings, keep, told)
    return findings


def _report(run: Run, findings: Findings, keep: str, progress: Progress | None) -> Findings:
    """Add the report to a run that is whole; after that, statistics that are not to be kept go."""
    add_report(run, findings, progress)
    if keep == "none":
        run.drop_statistics()
    return findings


def _and_then(source: Source, options: Options) -> str:
    """What comes after the pass over the input, where it takes long enough to be worth a word."""
    after = seconds_after(options.measures, options.wanted.sample, source.width, len(source.layers))
    return f", then about {duration(after)} of measuring" if after > _WORTH_A_WORD else ""


def _settings(source: Source, options: Options) -> dict[str, Any]:
    """What shapes the numbers beside the source."""
    return {
        "layers": source.layers,
        "measures": [m.name for m in options.measures],
        "sample": options.wanted.sample,
        "seed": options.seed,
        "batch_rows": source.batch_rows,
        "rows_dtype": str(source.dtype),
        "engine": source.engine["name"],
    }


def find(collection: Collection, source: Source, options: Options, progress: Progress) -> Findings:
    """Statistics to findings."""
    _check_rows(collection)
    nulls = Nulls()
    layers = [layer for layer in source.layers if any(key[1] == layer for key in collection.summaries)]
    groups: list[str | None] = [None, *collection.groups()]
    readings = []
    jobs = [(g, layer) for g in groups for layer in layers if g is None or (g, layer) in collection.summaries]
    unusual = UnusualRows(source.token_names)
    measures = options.measures_of(collection, layers)
    isoscore = next((m for m in measures if m.name == "isoscore"), None)
    costs = seconds(measures, options.wanted.sample, source.width)
    whole, spent = sum(costs.values()) * len(jobs), 0.0

    def tell(cost: float) -> None:
        nonlocal spent
        with lock:
            spent += cost
            progress("measuring", min(spent, whole), whole)

    def one(job: tuple[str | None, Layer]) -> tuple[Summary, list[Reading]]:
        group, layer = job
        summary = collection.layer(layer, group)
        found = read(
            summary,
            measures,
            layer=layer,
            group=group,
            seed=options.seed,
            nulls=nulls,
            done=lambda kind: tell(costs[kind]),
        )
        return summary, found

    lock = threading.Lock()
    tell(0.0)
    collection.settle()
    # Layers side by side, each on one thread: threads within one small eigenvalue problem would wait for each other.
    with open_pool(side_by_side(source.width)) as pool:
        for (group, layer), (summary, found) in zip(jobs, pool.map(one, jobs), strict=True):
            if group is None:
                unusual.add(layer, summary, math.nan if isoscore is None else nulls.value(isoscore, summary))
            readings += found
    readings += read_across(readings, measures, options.seed)
    findings = Findings(
        readings=readings,
        layers=layers,
        layer_names={str(k): v for k, v in source.layer_names.items()},
        source=masked_facts(source.describe()),
        counts=dict(collection.counts) | dict(unusual.counts),
        rows=unusual.rows,
        tables=tables(collection, source, layers),
    )
    findings.verdict = judge(findings)
    return findings


def _check_rows(collection: Collection) -> None:
    """Refuse what is less than a space in every layer."""
    usable: Counter[Layer] = Counter()
    left_out: Counter[Layer] = Counter()
    for (_, layer), summary in collection.summaries.items():
        usable[layer] += summary.moments.n
        left_out[layer] += summary.moments.zero + summary.moments.nonfinite
    most = max(usable.values(), default=0)
    if most < 2:
        bad = max(left_out.values(), default=0)
        beside = f" (besides {bad:,} of zeros, NaN or infinity)" if bad else ""
        raise InputError(f"{'one row' if most else 'no row'} has no geometry{beside}; give at least two.")


def measure(X: Any, names: str | list[str] | None = None, *, sample: int = 20_000, seed: int = 0) -> dict[str, float]:
    """Measures of rows X, shape (n, d): those of the moments, or those named; NaN where undefined.

    sample: how many rows are compared with each other at most, for measures that do; seed: chooses them.

    >>> import numpy as np
    >>> measure(np.eye(3), ["mean_cosine", "rbf_distance"])
    {'mean_cosine': 0.0, 'rbf_distance': -4.0...}
    """
    chosen = select("moments" if names is None else names)
    if names is None:
        chosen = [m for m in chosen if m.needs == "moments"]
    _refuse_images(chosen)
    if other := [m for m in chosen if m.needs not in ("moments", "sample", "cells")]:
        raise InputError(f"{other[0].name} cannot be taken from rows alone: it needs {other[0].needs}; use scan.")
    source = ArraySource(X, exact=True)
    found = source.reduce(MomentsAndSample.empty_for(source.width, sample, seed))
    summary, groups = Summary(found.moments, sample=found.sample), Groups(found.sample, ())
    statistics = {kind: statistic(kind, summary, groups, seed)[0] for kind in {m.statistic for m in chosen}}
    return {m.name: math.nan if statistics[m.statistic] is None else m(statistics[m.statistic]) for m in chosen}
