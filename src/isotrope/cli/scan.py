"""isotrope scan: measure every layer of a model, or vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli import engine_options

_MODEL = "Model"
_TEXT = "Text"
_WHAT = "What to measure"
_RUN = "Run"


def scan(
    input: Annotated[
        str | None,
        typer.Argument(
            help="Vectors, a text, images or sounds, or a model; found out from its kind.", show_default="Python manual"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Hub id, folder, GGUF or ONNX file.", show_default="embedded all-MiniLM-L6-v2", rich_help_panel=_MODEL
        ),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of a hub model.", rich_help_panel=_MODEL)] = None,
    gguf_file: Annotated[str | None, typer.Option(help="GGUF file in the folder.", rich_help_panel=_MODEL)] = None,
    hooks: Annotated[
        str | None,
        typer.Option("--hook", help='Modules whose outputs are the layers, e.g. "blocks.*".', rich_help_panel=_MODEL),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=_MODEL)] = "auto",
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let a model run its own code.", rich_help_panel=_MODEL)
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(help="Text, images or sounds: file, folder, dataset id; - for stdin.", rich_help_panel=_TEXT),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A named corpus: python-manual, or a dataset id.", rich_help_panel=_TEXT)
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Column or array to read, where there are several.", rich_help_panel=_TEXT)
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of a dataset.", rich_help_panel=_TEXT)] = None,
    unit: Annotated[
        str, typer.Option(help="What is one text in a plain file: line or paragraph.", rich_help_panel=_TEXT)
    ] = "line",
    group_by: Annotated[
        str | None, typer.Option(help="Measure each value of this column apart too.", rich_help_panel=_TEXT)
    ] = None,
    special_tokens: Annotated[
        str, typer.Option(help="keep or drop tokens that the tokenizer adds.", rich_help_panel=_TEXT)
    ] = "keep",
    max_length: Annotated[
        int | None,
        typer.Option(help="Tokens at which texts are cut.", show_default="512 or the model's", rich_help_panel=_TEXT),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="File or folder of npy, npz, safetensors, parquet, arrow, HDF5, faiss; or a store.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="One row per text: mean, cls, last, max, weightedmean, first+last, sbert-wk, mean:1+-1.",
            show_default="rows are tokens",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    layers: Annotated[str, typer.Option(help="all, or e.g. 0,6,-1 or L.before_norm.", rich_help_panel=_WHAT)] = "all",
    measures: Annotated[
        str | None,
        typer.Option(
            help="Groups or names, see isotrope catalogue.",
            show_default="moments,tokens,sequences",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="fast (float32 products) or exact (float64).",
            show_default="exact for vectors, fast for models",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(help="Rows kept for intervals and spectra of sequences.", rich_help_panel=_WHAT)
    ] = 20_000,
    seed: Annotated[int, typer.Option(help="Which rows are sampled.", rich_help_panel=_WHAT)] = 0,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Texts, images, sounds or rows at a time.", show_default="32 texts, 8 images", rich_help_panel=_RUN
        ),
    ] = None,
    bad_files: Annotated[
        str,
        typer.Option(help="stop at a file of vectors that cannot be read, or skip it.", rich_help_panel=_RUN),
    ] = "stop",
    engine: engine_options.Engine = "local",
    address: engine_options.Address = None,
    workers: engine_options.Workers = None,
    gpus_per_worker: engine_options.GpusPerWorker = 0.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder to write.", rich_help_panel=_RUN)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.", rich_help_panel=_RUN)] = False,
    keep: Annotated[
        str,
        typer.Option(
            help="Statistics that stay in the run folder: none, summary (for later commands) or all (exact).",
            rich_help_panel=_RUN,
        ),
    ] = "summary",
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints.", rich_help_panel=_RUN)] = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would cost.", rich_help_panel=_RUN)
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help='Exit with 1 where true, e.g. "layer[-1].mean_cosine > 0.5".', rich_help_panel=_RUN),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=_RUN)] = False,
) -> None:
    """Measure every layer of a model over text, images or sounds, or vectors, in one pass.

    Without arguments: the embedded model over the Python manual.
    """
    given = locals()
    from contextlib import nullcontext
    from dataclasses import replace

    from isotrope import gate
    from isotrope.cli.inputs import sort_out, vectors_offered
    from isotrope.cli.interrupts import advise_on_run, advise_when_stopped
    from isotrope.cli.next_step import next_command
    from isotrope.cli.output import echo, echo_json
    from isotrope.cli.result_folder import fresh_folder
    from isotrope.cli.terminal import Bar, show_findings, show_plan
    from isotrope.engines.engine import Engine
    from isotrope.errors import InputError
    from isotrope.measures import get
    from isotrope.pipeline import resolve_options
    from isotrope.plan import plan
    from isotrope.runs.retention import check_keep
    from isotrope.runs.run import Run
    from isotrope.scanner import scan_source
    from isotrope.sources.input import Input

    reading, where = Input.among(given), Engine.among(given)
    gates = [gate.parse(expression) for expression in fail_on or []]
    for one in gates:
        get(one.measure)
    options = resolve_options(_with(measures, [one.measure for one in gates]), sample=sample, seed=seed)
    check_keep(keep)
    place = sort_out(input, model=model, text=text, corpus=corpus, vectors=vectors)
    if resume and output is None:
        raise InputError("there is nothing to resume without a run folder; name it with -o.")
    folder = output if output is not None or json or dry_run else fresh_folder("isotrope-runs", place.name)
    run = Run(folder) if folder is not None else None
    if run is not None and dry_run:
        run.prepare(resume=resume)
    advise = advise_when_stopped(lambda: "" if dry_run else advise_on_run(run))
    kept = nullcontext() if run is None or dry_run else run.reserve(resume=resume)
    with advise, kept, vectors_offered(place), Bar(quiet=json) as bar:
        bar("opening", 0, None)
        reading = replace(reading, model=place.model, text=place.text, vectors=place.vectors)
        if dry_run:
            source = reading.open()
            gate.check_layers(gates, source.layers)
            bar("trying the first batches", 0, None)
            written = output is not None or not json
            estimate = plan(source, options.measures, options.wanted, report=written, keep=keep)
        else:
            with where.open(reading) as opened:
                gate.check_layers(gates, opened.layers)
                findings = scan_source(
                    opened,
                    options,
                    run=run,
                    resume=resume,
                    keep=keep,
                    checkpoint_every=checkpoint_every,
                    progress=bar,
                )
    if dry_run:
        show_plan(replace(estimate, engine=where.engine), json=json)
        return
    if json:
        echo_json(findings.to_json())
    else:
        show_findings(findings, folder)
        assert folder is not None
        echo(f"Next: {next_command(findings, place, given, folder)}")
    outcomes = [gate.check(one, findings) for one in gates]
    for outcome in outcomes:
        echo(outcome.text, err=True)
    if any(outcome.failed for outcome in outcomes):
        raise typer.Exit(1)


def _with(measures: str | None, more: list[str]) -> str | None:
    """The measures asked for, and those that the gates need."""
    from isotrope.pipeline import DEFAULT_MEASURES

    return ",".join([measures or DEFAULT_MEASURES, *more]) if more else measures
