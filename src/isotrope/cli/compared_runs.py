"""What `isotrope compare` works on: run folders, or vectors that are scanned into a temporary one; gates and layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from isotrope.cli.gates import check_junit
from isotrope.cli.inputs import is_run, make_folder_name
from isotrope.cli.options import parse_names
from isotrope.cli.progress import Bar
from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.findings import Findings
from isotrope.gate import Gate, parse
from isotrope.layers import Layer, resolve_layer
from isotrope.measures import get, select
from isotrope.options import ScanOptions
from isotrope.readings.selected_measures import DEFAULT_MEASURES
from isotrope.runs.compared_gates import list_measures, select_pairs
from isotrope.runs.comparison import Change, Comparison
from isotrope.runs.layer_tests import LayerTests, compute_layer_tests
from isotrope.runs.run import Run
from isotrope.scanner import check_options, scan_source
from isotrope.sources.input import Input


@contextmanager
def open_runs(inputs: Sequence[str], options: ScanOptions, bar: Bar) -> Iterator[list[Run]]:
    """Open run folders; vectors are scanned, and the folder that this takes is gone afterwards.

    Args:
        inputs: Run folders, files of vectors, or stores.
        options: What is measured of vectors, and the seed of their sampled rows.
        bar: Shows how far the scans are.
    """
    check_options(options, vectors=True)
    with TemporaryDirectory(prefix="isotrope-") as folder:
        yield [
            Run(input) if is_run(input) else _scan(input, Path(folder) / str(number), options, bar)
            for number, input in enumerate(inputs, start=1)
        ]


def parse_gates(fail_on: list[str] | None, runs: list[str], junit: Path | None) -> list[Gate]:
    """The gates, refused before anything is read where they cannot be decided."""
    check_junit(junit, fail_on)
    gates = [parse(expression) for expression in fail_on or []]
    for name in list_measures(gates):
        get(name)
    if gates and len(runs) != 2:
        raise InputError(f"a gate compares two runs, got {len(runs)}; name a baseline and one other run.")
    if gates:
        _check_different(runs)
    return gates


def add_measures(options: ScanOptions, gates: list[Gate]) -> ScanOptions:
    """Add the measures that gates need to those asked for."""
    asked = options.measures or DEFAULT_MEASURES
    names = parse_names(asked) if isinstance(asked, str) else asked
    return replace(options, measures=[*names, *list_measures(gates)])


def compute_tests(
    first: Run,
    second: Run,
    comparison: Comparison,
    gates: list[Gate],
    layers: str | None,
    findings: Findings,
    seed: int,
    bar: Bar,
) -> list[LayerTests]:
    """The two-sample tests of the layers asked for, and of those that gates need."""
    pairs = select_pairs(gates, comparison.alignment.pairs, _resolve_layers(layers, findings))
    return compute_layer_tests(first, second, pairs, seed=seed, progress=bar)


def _resolve_layers(layers: str | None, first: Findings) -> list[Layer] | None:
    if layers is None:
        return None
    return [resolve_layer(part, first.layers, first.layer_names, run="the first run") for part in layers.split(",")]


def select_changes(
    changes: list[Change], first: Findings, measures: str | list[str] | None, layers: str | None
) -> list[Change]:
    """The changes of the measures and layers asked for."""
    if measures is not None:
        names = {m.name for m in select(measures)}
        changes = [c for c in changes if c.measure in names]
    if layers is not None:
        wanted = set(map(str, _resolve_layers(layers, first) or []))
        changes = [c for c in changes if str(c.layer) in wanted]
    if not changes:
        raise InputError("the runs share no reading of these measures and layers; leave out --measures or --layers.")
    return changes


def _check_different(inputs: Sequence[str]) -> None:
    """Refuse a gate on an input that is compared with itself."""
    if len({Path(input).resolve() for input in inputs}) < len(inputs):
        raise InputError(f"{inputs[0]!r} is compared with itself, so that no gate can trip; name two different runs.")


def _scan(input: str, folder: Path, options: ScanOptions, bar: Bar) -> Run:
    reading = Input(vectors=input, seed=options.seed)
    run = Run(folder / (Path(input).absolute().parent.name or "root") / make_folder_name(reading))
    bar("opening", 0, None)
    with Engine().open(reading) as source:
        scan_source(source, check_options(options, vectors=True), run, options, bar, report=False)
    return run
