"""isotrope scan: measure every layer of a model, or vectors."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import isotrope.gate as gate
from isotrope.cli.gates import check_junit, conclude, write_junit
from isotrope.cli.options import ENGINE, OptionGroup, derive_options, name_new_folder
from isotrope.cli.output import echo, print_json
from isotrope.cli.progress import Bar, advise_on_run, advise_when_stopped
from isotrope.cli.terminal import show_findings, show_plan, show_requests
from isotrope.engines.engine import Engine
from isotrope.options import ScanOptions
from isotrope.sources.input import Input
from isotrope.storage.redaction import mask_arguments

if TYPE_CHECKING:
    from isotrope.findings import Findings
    from isotrope.readings.selected_measures import SelectedMeasures

_RUN = "Run"

#: Options on how an input is read, which the next command needs too.
_READING = ("endpoint", "keep_vectors", "revision", "gguf_file", "column", "split")

#: A gate for a space that is sound today.
_WATCH = "mean_cosine > 0.5"

#: The text that a model reads where none is given, by its name.
_DEFAULT_TEXT = "python-manual"


@derive_options(after={"corpus": "text", "measures": "layers"})
def scan(
    reading: Annotated[Input, OptionGroup(Input)],
    where: Annotated[Engine, ENGINE],
    options: Annotated[ScanOptions, OptionGroup(ScanOptions)],
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
    junit: Annotated[
        Path | None, typer.Option(help="Write the outcomes of gates as JUnit XML.", rich_help_panel=_RUN)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=_RUN)] = False,
) -> None:
    """Without arguments: the embedded model over the Python manual."""
    from isotrope.cli.inputs import make_folder_name, offer_vectors, resolve_input
    from isotrope.measures import get
    from isotrope.runs.kept_vectors import keep_vectors_in_run
    from isotrope.runs.run import Run
    from isotrope.scanner import check_options, read_queries, scan_source

    gates = [gate.parse(expression) for expression in fail_on or []]
    check_junit(junit, fail_on)
    gate.check_one_run(gates)
    for one in gates:
        get(one.measure)
    reading = replace(resolve_input(input, reading, corpus), seed=options.seed)
    vectors = reading.gives_vectors
    options = replace(options, measures=_add_measures(options.measures, [one.measure for one in gates], vectors))
    selected = check_options(options, vectors=vectors)
    if dry_run:
        _print_plan(reading, where, options, selected, gates, json=json)
        return
    folder = None if options.output is None else Path(options.output)
    if folder is None and not json:
        folder = name_new_folder("isotrope-runs", make_folder_name(reading))
    run = None if folder is None else Run(folder)
    reading = keep_vectors_in_run(reading, run)
    lock = nullcontext() if run is None else run.reserve(resume=options.resume)
    with advise_when_stopped(lambda: advise_on_run(run)), lock, offer_vectors(reading), Bar(quiet=json) as bar:
        bar("opening", 0, None)
        queries = read_queries(where, reading, options, bar)
        with where.open(reading) as source:
            gate.check_layers(gates, source.layers)
            findings = scan_source(source, selected, run, options, bar, queries)
    if json:
        print_json(findings.to_dict())
    else:
        show_findings(findings, folder)
        assert folder is not None
        echo(f"Next: {suggest_command(findings, reading, folder)}")
    outcomes = [gate.decide(one, findings) for one in gates]
    if junit is not None:
        write_junit(junit, f"isotrope scan {make_folder_name(reading)}", gates, outcomes)
    conclude(outcomes)


def _print_plan(
    reading: Input,
    where: Engine,
    options: ScanOptions,
    selected: SelectedMeasures,
    gates: list[gate.Gate],
    *,
    json: bool,
) -> None:
    """Print what a scan would cost, by its first batches."""
    from isotrope.cli.inputs import offer_vectors
    from isotrope.plan import plan
    from isotrope.runs.kept_vectors import keep_vectors_in_run
    from isotrope.runs.run import Run

    run = None if options.output is None else Run(options.output)
    if run is not None:
        run.prepare(resume=options.resume)
    if reading.endpoint is not None:
        _print_requests(keep_vectors_in_run(reading, run), json=json)
        return
    with offer_vectors(reading), Bar(quiet=json) as bar:
        bar("opening", 0, None)
        source = reading.open()
        gate.check_layers(gates, source.layers)
        bar("trying the first batches", 0, None)
        written = options.output is not None or not json
        estimate = plan(source, selected.measures, selected.wanted, report=written, keep=options.keep)
    show_plan(replace(estimate, engine=where.engine), json=json)


def _print_requests(reading: Input, *, json: bool) -> None:
    """Print what a scan would send to an endpoint; nothing is sent."""
    from isotrope.sources.endpoint.estimate import estimate_requests

    with Bar(quiet=json) as bar:
        bar("reading texts", 0, None)
        estimate = estimate_requests(reading)
    show_requests(estimate, json=json)


def _add_measures(measures: str | list[str] | None, more: list[str], vectors: bool) -> str | list[str] | None:
    """Add the measures that gates need to those asked for, or to the usual ones."""
    from isotrope.readings.selected_measures import name_default

    if not more:
        return measures
    asked = name_default(vectors) if measures is None else measures
    return [*(asked.split(",") if isinstance(asked, str) else asked), *more]


def suggest_command(findings: Findings, reading: Input, folder: Path) -> str:
    """The command to type after a scan: it depends on the verdict and on what was scanned.

    Args:
        findings: What the scan found.
        reading: Where its rows came from.
        folder: Its run folder.

    >>> from isotrope.findings import Findings, Statement, Verdict
    >>> from isotrope.sources.input import Input
    >>> collapsed = Findings([], verdict=Verdict("collapsed", (Statement(3, "Collapsed.", (0,)),)))
    >>> suggest_command(collapsed, Input(vectors="my rows.npy"), Path("run"))
    "isotrope advise 'my rows.npy'"
    """
    from isotrope.report.headline import find_level
    from isotrope.verdict.search import CALIBRATE

    if find_level(findings) is None:
        return "isotrope catalogue"
    if findings.source.get("modality", "text") != "text":
        return _join("figure", str(folder), "mean_cosine", "-o", "mean_cosine.pdf")
    options = _name_input(reading)
    if any(CALIBRATE in statement.text for statement in findings.verdict.statements):
        return _join("calibrate", *options, "--false-accept", "1e-4")
    if any(statement.level for statement in findings.verdict.statements if statement.layers):
        return _join("advise", *options)
    if reading.vectors is not None:
        return _join("scan", *options, "--fail-on", _WATCH)
    return f"{_join('compare', str(folder))} OTHER_RUN"


def _name_input(reading: Input) -> list[str]:
    """Arguments that name the input again; text from a pipe cannot be read twice."""
    named = [] if reading.vectors is None else [reading.vectors]
    named += [] if reading.model is None else ["--model", reading.model]
    if reading.vectors is None:
        named += ["--text", "FILE" if reading.text == "-" else reading.text or _DEFAULT_TEXT]
    for name in _READING:
        if (value := getattr(reading, name)) is not None:
            named += [f"--{name.replace('_', '-')}", str(value)]
    return named


def _join(*arguments: str) -> str:
    return shlex.join(["isotrope", *mask_arguments(arguments)])
