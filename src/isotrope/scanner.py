"""scan(): the pipeline, then the run folder, then the report.

The module is not called `scan`: importing a module of that name would replace the public function `isotrope.scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.findings import Findings
from isotrope.options import ScanOptions
from isotrope.pipeline import (
    Progress,
    SelectedMeasures,
    collect,
    compute_findings,
    describe_settings,
    release_memory,
    resolve_measures,
)
from isotrope.runs import checkpoints
from isotrope.runs.retention import check_keep, select_statistics
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.statistics import Collection
from isotrope.storage.provenance import describe_provenance, record_start

if TYPE_CHECKING:
    from isotrope.sources.models.load import Loaded

_DEFAULTS = ScanOptions()


def scan(
    *,
    model: str | Path | Loaded | None = None,
    text: str | Path | Sequence[Any] | None = None,
    vectors: Any = None,
    layers: str | int | Sequence[int | str] = "all",
    measures: str | list[str] | None = None,
    pooling: str | None = None,
    maps: str = "places",
    column: str | None = None,
    split: str | None = None,
    unit: str = "line",
    group_by: str | None = None,
    share: float = 1.0,
    max_words: int = 0,
    merge_types: bool = False,
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
    variant: str = "definition",
    progress: Progress | None = None,
) -> Findings:
    """Measure every layer of a model over a text, or existing vectors, in one pass.

    Args:
        model: Hub id, folder, GGUF or ONNX file; None for the embedded default.
        text: File, folder, dataset id, list of strings, or "-" for standard input; None for the Python manual. For a
            model of images or sounds: a file, folder, parquet file, dataset id or list of these.
        vectors: Array, file, list of files or folder, instead of model and text.
        layers: "all", or numbers and names of layers; negative numbers count from the end.
        measures: Names or groups of measures; None for the groups moments, tokens and sequences.
        pooling: How a text becomes one row, such as "mean"; None for one row per token.
        maps: What the rows of a convolution's map are: its "places", or the "whole" map as one row for each image.
        column: Column or array to read, where there are several.
        split: Split of a dataset.
        unit: What one text of a plain file is: "line" or "paragraph".
        group_by: Column whose values are measured separately too.
        share: Random share of the texts, by a hash of each text and the seed.
        max_words: Most words of a text, longer ones are left out; 0 for any number.
        merge_types: Whether tokens that are words and those that are parts of words, such as "ing" and "##ing", or
            "Ġing" and "ing", are one token type.
        special_tokens: "keep" or "drop" the tokens that the tokenizer adds.
        revision: Revision of a hub model.
        gguf_file: Name of the GGUF file in the folder.
        hooks: Modules whose outputs are the layers, such as "blocks.*".
        trust_remote_code: Whether a model may run its own code.
        precision: "fast" (float32 products) or "exact" (float64); None is exact for vectors and fast for models.
        sample: How many rows of each layer are sampled, for intervals and for measures that compare rows.
        seed: Selects the sampled rows and the share of the texts.
        batch_size: Texts, images, sounds or rows that are read at a time.
        max_length: Number of tokens at which texts are truncated.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".
        bad_files: "stop" at a file of vectors that cannot be read, or "skip" it and name it; on a cluster, any shard.
        engine: "local", or "ray" for a cluster.
        address: Address of the cluster.
        workers: Number of workers; None for as many as there is room for.
        gpus_per_worker: GPUs of each worker, such as 1 or 0.5.
        output: A run folder to write.
        resume: Whether to continue the run in that folder.
        keep: How much of the statistics stays in the folder: "none" (findings, tables and the report only), "summary"
            (compact, for all commands that read runs) or "all" (exact, and runs can be merged).
        checkpoint_every: Seconds between checkpoints.
        variant: Another definition that is computed beside the usual one, for each measure that has it, such as
            "published" for that of the paper's own code; the verdict keeps to the usual one.
        progress: Called with what is going on, how much is done, and of how much.

    Returns:
        All readings and the verdict.

    Examples:
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
        maps=maps,
        column=column,
        split=split,
        unit=unit,
        group_by=group_by,
        share=share,
        max_words=max_words,
        merge_types=merge_types,
        seed=seed,
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
    options = ScanOptions(
        measures=measures,
        sample=sample,
        seed=seed,
        output=output,
        resume=resume,
        keep=keep,
        checkpoint_every=checkpoint_every,
        variant=variant,
    )
    selected = check_options(options)
    run = None if output is None else Run(output)
    with nullcontext() if run is None else run.reserve(resume=resume), where.open(reading) as source:
        return scan_source(source, selected, run, options, progress)


def check_options(options: ScanOptions) -> SelectedMeasures:
    """Check the options of a scan before anything is opened, and resolve its measures."""
    selected = resolve_measures(options.measures, sample=options.sample, seed=options.seed, variant=options.variant)
    check_keep(options.keep)
    if not options.checkpoint_every >= 0:
        raise InputError(f"checkpoints every {options.checkpoint_every} seconds are not possible; give 0 or more.")
    if options.resume and options.output is None:
        raise InputError("there is nothing to resume without a run folder; name it as the output (-o).")
    return selected


def scan_source(
    source: Source,
    selected: SelectedMeasures,
    run: Run | None = None,
    options: ScanOptions = _DEFAULTS,
    progress: Progress | None = None,
    *,
    report: bool = True,
) -> Findings:
    """Measure a source and, with a run folder, write the run and its report.

    Args:
        source: What is read.
        selected: What is computed.
        run: The folder to write, with checkpoints on the way; None for none.
        options: Whether to resume, what to keep in the folder, and how often to write checkpoints.
        progress: Called with what is going on, how much is done, and of how much.
        report: Whether the run has a report.
    """
    started, report_progress = record_start(), progress or (lambda *_: None)
    task = checkpoints.describe_task(source, describe_settings(source, selected))
    collection = Collection(selected.wanted)
    if run is not None and options.resume:
        if run.finished:
            return _add_report(run, run.load_finished(task), options.keep, report_progress)
        collection = checkpoints.load_checkpoint(run.checkpoints, task, selected.wanted)
    resumed = collection.batches
    save = None if run is None else lambda now: checkpoints.save_checkpoint(run.checkpoints, task, now)
    every = options.checkpoint_every
    collection = collect(source, selected, collection, save=save, every=every, progress=report_progress)
    findings = compute_findings(collection, source, selected, report_progress)
    findings.provenance = describe_provenance(started, task["settings"], resumed) | {"engine": source.engine}
    if run is not None:
        report_progress("writing the run", 0, None)
        statistics = select_statistics(collection, options.keep)
        run.save(findings, statistics)
        if not report:
            return findings
        del collection  # the report is computed from the statistics that the run keeps, which take less memory
        release_memory()
        _add_report(run, findings, options.keep, report_progress, SavedStatistics.of_arrays(statistics))
    return findings


def _add_report(
    run: Run, findings: Findings, keep: str, progress: Progress, statistics: SavedStatistics | None = None
) -> Findings:
    """Add the report to a finished run; then remove the statistics if none are to be kept."""
    from isotrope.report import add_report  # needed only with a run folder

    add_report(run, findings, statistics=statistics, progress=progress)
    if keep == "none":
        run.drop_statistics()
    return findings
