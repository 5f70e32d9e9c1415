"""Reports as files: of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isotrope.findings import Findings
from isotrope.formats.json import to_plain
from isotrope.report.data import describe_page, describe_run
from isotrope.report.html import render_page
from isotrope.report.tables import Progress, add_tables, add_tsne, has_tables, has_tsne
from isotrope.runs.comparison import Alignment, Change, Comparison, compare
from isotrope.runs.layer_tests import LayerTests, compute_layer_tests
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.storage.files import write_text

NAME = "report.html"


def add_report(run: Run, findings: Findings, *, statistics: SavedStatistics | None = None, progress: Progress) -> None:
    """Compute what a report needs of a finished run, and write the report into its folder.

    Args:
        run: The run folder, without a report or with one, which then stays.
        findings: What the run found.
        statistics: Those of the run where they are still in memory; None to read them from the folder.
        progress: Called with what is going on, how much is done, and of how much.
    """
    if not (run.folder / NAME).exists():
        add_tables(run, findings, progress, statistics)
        _write(findings, run.folder, run.folder / NAME, progress)


def write_report(
    source: Findings | Run | str | Path,
    path: str | Path | None = None,
    *,
    tsne: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> Path:
    """Write the report of a run folder or of findings, and return its path.

    Args:
        source: Run folder or findings. Findings alone have no rows, so that their report has no projections.
        path: File to write; by default report.html in the run folder.
        tsne: Whether to add t-SNE projections, which take minutes.
        progress: Called with a stage, what is done and the total.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> from isotrope import scan
        >>> found = scan(vectors=np.random.default_rng(0).normal(size=(300, 4)))
        >>> write_report(found, tempfile.mkdtemp() + "/report.html").name
        'report.html'
    """
    if isinstance(source, Findings):
        target = Path(path or NAME)
        _write(source, None, target, progress)
        return target
    run = source if isinstance(source, Run) else Run(source)
    target = run.folder / NAME if path is None else Path(path)
    within = target.resolve().is_relative_to(run.folder.resolve())
    with _open_findings(
        run, lambda found: within or not has_tables(found) or (tsne and not has_tsne(found))
    ) as findings:
        add_tables(run, findings, progress)
        if tsne:
            add_tsne(run, findings, progress)
        _write(findings, run.folder, target, progress)
    return target


@contextmanager
def _open_findings(run: Run, adds: Callable[[Findings], bool]) -> Iterator[Findings]:
    """What a run found; where something is to be added to its folder, kept from all other processes meanwhile."""
    findings = run.findings()
    if not adds(findings):
        yield findings
        return
    with run.hold_lock():
        yield run.findings()  # another process may have added to it until now


def _write(findings: Findings, folder: Path | None, target: Path, progress: Progress) -> None:
    progress("writing the report", 0, None)
    name = folder.absolute().name if folder is not None else findings.title
    data = describe_page("report", [describe_run(findings, name, folder)])
    write_text(target, render_page(data, f"{findings.title if findings.model else name}: {findings.verdict.word}"))


def write_comparison(
    runs: Sequence[Run | str | Path],
    path: str | Path,
    *,
    align: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Path:
    """Write the report of several runs side by side, with the changes from the first to each of the others.

    The sampled rows of the last layers are tested for a shift of mean, covariance and neighbourhoods.

    Args:
        runs: Run folders, two or more.
        path: The HTML file.
        align: How layers are paired, "depth" or "name"; by default by name where the runs have the same layers, and by
            relative depth otherwise.
        progress: Called with what is going on, how much is done, and of how much.

    Returns:
        The path of the report.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    changes = compare([run.findings() for run in opened], align)
    tests = [
        compute_layer_tests(opened[0], run, comparison.alignment.pairs[-1:], progress=progress)
        for run, comparison in zip(opened[1:], changes, strict=True)
    ]
    return write_tested_comparison(opened, Path(path), changes, tests, progress)


def write_tested_comparison(
    runs: Sequence[Run],
    path: Path,
    changes: Sequence[Comparison],
    tests: Sequence[Sequence[LayerTests]],
    progress: Progress,
) -> Path:
    """Write the report of several runs whose changes and tests are known.

    Args:
        runs: Two or more.
        path: The HTML file.
        changes: From the first run to each of the others.
        tests: Of some layers of the first run and of each of the others.
        progress: Called with what is going on, how much is done, and of how much.
    """
    found = []
    for run in runs:
        with _open_findings(run, lambda findings: not has_tables(findings)) as findings:
            add_tables(run, findings, progress)
            found.append(findings)
    names = _names([run.folder for run in runs])
    progress("writing the comparison", 0, None)
    documents = [describe_run(f, name, run.folder) for f, name, run in zip(found, names, runs, strict=True)]
    lines = [
        {"run": run, **_describe_change(change)}
        for run, found_changes in enumerate(changes, start=1)
        for change in found_changes
        if change.group is None
    ]
    alignments = [_describe_alignment(found_changes.alignment) for found_changes in changes]
    shifts = [_describe_tests(run, layer) for run, layers in enumerate(tests, start=1) for layer in layers]
    data = describe_page("comparison", documents, changes=lines, alignments=alignments, shifts=shifts)
    write_text(path, render_page(data, " · ".join(names)))
    return path


def _describe_change(change: Change) -> dict[str, Any]:
    layers = {
        name: None if layer is None else str(layer)
        for name, layer in (("layer", change.layer), ("other_layer", change.other_layer))
    }
    return {**to_plain(change), "difference": to_plain(change.difference), **layers}


def _describe_tests(run: int, layer: LayerTests) -> dict[str, Any]:
    words = layer.list_sentences()[0]
    results = [to_plain(record) for record in layer.describe() if record["reason"] is None]
    return {"run": run, "layer": str(layer.layer), "words": words, "results": results}


def _describe_alignment(alignment: Alignment) -> dict[str, Any]:
    return {
        "by": alignment.by,
        "partners": {str(one): str(other) for one, other in alignment.pairs},
        "only_first": [str(layer) for layer in alignment.only_first],
        "only_second": [str(layer) for layer in alignment.only_second],
    }


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' names; with the one above it where two are the same."""
    short = [folder.absolute().name for folder in folders]
    if len(set(short)) == len(short):
        return short
    return [f"{i}: {folder.absolute().parent.name}/{folder.absolute().name}" for i, folder in enumerate(folders, 1)]
