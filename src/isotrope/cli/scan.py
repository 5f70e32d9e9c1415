"""isotrope scan: measure every layer of a model, or vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.options import ENGINE, Options, derive_options
from isotrope.engines.engine import Engine
from isotrope.options import ScanOptions
from isotrope.sources.input import Input

_RUN = "Run"


@derive_options(after={"corpus": "text", "measures": "layers"})
def scan(
    reading: Annotated[Input, Options(Input)],
    where: Annotated[Engine, ENGINE],
    asked: Annotated[ScanOptions, Options(ScanOptions)],
    input: Annotated[
        str | None,
        typer.Argument(
            help="Vectors, a text, images or sounds, or a model; found out from its kind.", show_default="Python manual"
        ),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A named corpus: python-manual, or a dataset id.", rich_help_panel="Text")
    ] = None,
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
    from contextlib import nullcontext
    from dataclasses import replace

    from isotrope import gate
    from isotrope.cli.inputs import make_folder_name, offer_vectors, resolve_input
    from isotrope.cli.interrupts import advise_on_run, advise_when_stopped
    from isotrope.cli.next_step import next_command
    from isotrope.cli.output import echo, print_json
    from isotrope.cli.result_folder import fresh_folder
    from isotrope.cli.terminal import Bar, show_findings, show_plan
    from isotrope.errors import InputError
    from isotrope.measures import get
    from isotrope.pipeline import choose, scan_source
    from isotrope.plan import plan
    from isotrope.runs.retention import check_keep
    from isotrope.runs.run import Run

    output = None if asked.output is None else Path(asked.output)
    resume, keep = asked.resume, asked.keep
    gates = [gate.parse(expression) for expression in fail_on or []]
    for one in gates:
        get(one.measure)
    options = choose(
        _add_measures(asked.measures, [one.measure for one in gates]), sample=asked.sample, seed=asked.seed
    )
    check_keep(keep)
    reading = resolve_input(input, reading, corpus)
    if resume and output is None:
        raise InputError("there is nothing to resume without a run folder; name it with -o.")
    folder = (
        output if output is not None or json or dry_run else fresh_folder("isotrope-runs", make_folder_name(reading))
    )
    run = Run(folder) if folder is not None else None
    if run is not None and dry_run:
        run.prepare(resume=resume)
    advise = advise_when_stopped(lambda: "" if dry_run else advise_on_run(run))
    kept = nullcontext() if run is None or dry_run else run.held(resume=resume)
    with advise, kept, offer_vectors(reading), Bar(quiet=json) as bar:
        bar("opening", 0, None)
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
                    checkpoint_every=asked.checkpoint_every,
                    progress=bar,
                )
    if dry_run:
        show_plan(replace(estimate, engine=where.engine), json=json)
        return
    if json:
        print_json(findings.to_dict())
    else:
        show_findings(findings, folder)
        assert folder is not None
        echo(f"Next: {next_command(findings, reading, folder)}")
    outcomes = [gate.check(one, findings) for one in gates]
    for outcome in outcomes:
        echo(outcome.text, err=True)
    if any(outcome.failed for outcome in outcomes):
        raise typer.Exit(1)


def _add_measures(measures: str | list[str] | None, more: list[str]) -> str | list[str] | None:
    """Add the measures that gates need to those asked for."""
    from isotrope.pipeline import DEFAULT_MEASURES

    if not more:
        return measures
    asked = DEFAULT_MEASURES if measures is None else measures
    return [*(asked.split(",") if isinstance(asked, str) else asked), *more]
