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
    collect,
    compute_findings,
    describe_settings,
    release_memory,
)
from isotrope.readings.queries import Queries, collect_queries
from isotrope.readings.selected_measures import SelectedMeasures, resolve_measures
from isotrope.runs import checkpoints
from isotrope.runs.kept_vectors import keep_vectors_in_run
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
    endpoint: str | None = None,
    concurrency: int = 4,
    keep_vectors: str | Path | None = None,
    text: str | Path | Sequence[Any] | None = None,
    vectors: Any = None,
    queries: Any = None,
    layers: str | int | Sequence[int | str] = "all",
    measures: str | list[str] | None = None,
    pooling: str | None = None,
    maps: str = "places",
    column: str | None = None,
    split: str | None = None,
    unit: str = "line",
    group_by: str | None = None,
    id_column: Any = None,
    text_column: Any = None,
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
        model: Hub id, folder, GGUF or ONNX file; None for the embedded default. With an endpoint, the name by which the
            server knows it.
        endpoint: URL of an OpenAI-compatible server, such as "http://localhost:8000/v1"; each text is one row. The key
            is read from the environment variable ISOTROPE_API_KEY, or else OPENAI_API_KEY.
        concurrency: Requests to an endpoint at a time.
        keep_vectors: Folder in which the vectors that an endpoint has answered are kept, so that no text is sent
            twice; by default in the run folder.
        text: File, folder, dataset id, list of strings, or "-" for standard input; None for the Python manual. For a
            model of images or sounds: a file, folder, parquet file, dataset id or list of these.
        vectors: Array, file, list of files or folder, instead of model and text.
        queries: Queries that search the rows: vectors of the same width, or for a model the texts of queries. They add
            the measures of queries against documents.
        layers: "all", or numbers and names of layers; negative numbers count from the end.
        measures: Names or groups of measures; None for the groups moments, tokens and sequences.
        pooling: How a text becomes one row, such as "mean"; None for one row per token.
        maps: What the rows of a convolution's map are: its "places", or the "whole" map as one row for each image.
        column: Column or array to read, where there are several.
        split: Split of a dataset.
        unit: What one text of a plain file is: "line" or "paragraph".
        group_by: Column whose values are measured separately too.
        id_column: Ids of the rows, by which findings name them: a column beside the vectors or texts, or for vectors a
            file with one line for each row (`FILE`, or `FILE:COLUMN` of a table) or a list.
        text_column: Texts of the vectors, given in the same way; what a model reads is known already.
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
        endpoint=endpoint,
        concurrency=concurrency,
        keep_vectors=keep_vectors,
        text=text,
        vectors=vectors,
        layers=layers,
        pooling=pooling,
        maps=maps,
        column=column,
        split=split,
        unit=unit,
        group_by=group_by,
        id_column=id_column,
        text_column=text_column,
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
        queries=queries,
        measures=measures,
        sample=sample,
        seed=seed,
        output=output,
        resume=resume,
        keep=keep,
        checkpoint_every=checkpoint_every,
        variant=variant,
    )
    selected = check_options(options, vectors=reading.gives_vectors)
    run = None if output is None else Run(output)
    reading = keep_vectors_in_run(reading, run)
    with nullcontext() if run is None else run.reserve(resume=resume):
        asked = read_queries(where, reading, options, progress)
        with where.open(reading) as source:
            return scan_source(source, selected, run, options, progress, asked)


def read_queries(
    where: Engine, reading: Input, options: ScanOptions, progress: Progress | None = None
) -> Queries | None:
    """Read the queries of a scan in the way of its documents, None where there are none.

    Args:
        where: Where the queries are read.
        reading: How the documents are read.
        options: Names the queries.
        progress: Called with what is going on, how much is done, and of how much.
    """
    if options.queries is None:
        return None
    with where.open(reading.for_queries(options.queries)) as source:
        return collect_queries(source, options.seed, progress or (lambda *_: None))


def check_options(options: ScanOptions, *, vectors: bool) -> SelectedMeasures:
    """Check the options of a scan before anything is opened, and resolve its measures.

    vectors: whether vectors are scanned, for which other measures are usual.
    """
    selected = resolve_measures(
        options.measures,
        sample=options.sample,
        seed=options.seed,
        variant=options.variant,
        vectors=vectors,
        queries=options.queries is not None,
    )
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
    queries: Queries | None = None,
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
        queries: Queries that search the rows, None where there are none.
        report: Whether the run has a report.
    """
    if queries is not None:
        queries.check(source)
    started, report_progress = record_start(), progress or (lambda *_: None)
    source.check_names()
    task = checkpoints.describe_task(source, describe_settings(source, selected, queries))
    collection = Collection(selected.wanted)
    if run is not None and options.resume:
        if run.finished:
            return _add_report(run, run.load_finished(task), options.keep, report_progress)
        collection = checkpoints.load_checkpoint(run.checkpoints, task, selected.wanted)
    resumed = collection.batches
    save = None if run is None else lambda now: checkpoints.save_checkpoint(run.checkpoints, task, now)
    every = options.checkpoint_every
    collection = collect(source, selected, collection, save=save, every=every, progress=report_progress)
    findings = compute_findings(collection, source, selected, report_progress, queries)
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
