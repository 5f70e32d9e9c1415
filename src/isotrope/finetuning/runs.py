"""Runs of a GLUE evaluation as plain data, each in its own file of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from isotrope.errors import StoreError
from isotrope.finetuning.settings import METHODS, family
from isotrope.finetuning.tasks import TASKS
from isotrope.storage.files import check_writable, name_path_in_errors, remove_leftovers, write_text

_FORMAT = 1

#: The subfolder of the runs.
RUNS = "runs"


@dataclass(frozen=True)
class GlueRun:
    """One model fine-tuned on one task by one method with one seed.

    scores: by metric, between 0 and 1, None where undefined; metrics of the mismatched rows of MNLI end in
    "_mismatched". held_out: score on held-out rows after each epoch. epoch: the best epoch (from 1). alphas: steps and
    values of SoftDecay's α. spectra: "pretrained" and "trained", and "into softdecay" and "out of softdecay", see
    `isotrope.finetuning.token_spectra`. settings: what must be the same for runs to be comparable.
    """

    task: str
    method: str
    seed: int
    scores: dict[str, float | None]
    held_out: list[float | None]
    epoch: int
    losses: list[float]
    steps: int
    seconds: float
    rows: dict[str, int]
    alphas: list[tuple[int, float]] = field(default_factory=list)
    spectra: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.method, self.seed


def run_file(folder: Path, task: str, method: str, seed: int) -> Path:
    """The file of a run."""
    return folder / RUNS / f"{task}.{method.replace(':', '.')}.seed={seed}.json"


def write_run(folder: Path, run: GlueRun) -> None:
    """Write a run to its file, atomically."""
    write_text(run_file(folder, *run.key), json.dumps({"format": _FORMAT} | asdict(run), allow_nan=False))


def read_runs(folder: Path) -> list[GlueRun]:
    """Read all runs of a folder, in the order of their file names."""
    return [_read_run(path) for path in sorted((folder / RUNS).glob("*.json"))]


def prepare_folder(folder: Path, *, resume: bool) -> list[GlueRun]:
    """Check that a folder can be written to, and read its runs; without `resume` it must have none."""
    found = read_runs(folder)
    if found and not resume:
        raise StoreError(
            f"the folder {str(folder)!r} already holds {len(found):,} runs; "
            "choose another one with -o, continue it with --resume, or delete it."
        )
    check_writable(folder)
    remove_leftovers(folder / RUNS, "*.json")
    return found


def check_settings(runs: Iterable[GlueRun], settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that earlier runs have the same settings of their task, so that they are comparable.

    Args:
        runs: earlier runs.
        settings: settings by task.
    """
    for run in runs:
        for name, now in settings.get(run.task, {}).items():
            before = run.settings.get(name)
            if before != now:
                raise StoreError(
                    f"earlier runs of {run.task} in this folder have {name.replace('_', ' ')} {before}, now it is "
                    f"{now}; say the same, or choose another folder with -o."
                )


def _read_run(path: Path) -> GlueRun:
    with name_path_in_errors(path):
        text = path.read_bytes()
    try:
        found = json.loads(text)
        version = found.pop("format")
        known = {f.name for f in fields(GlueRun)}
        run = GlueRun(**{name: value for name, value in found.items() if name in known})
        if run.task not in TASKS or family(run.method) not in METHODS:
            raise ValueError(run.key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{str(path)!r} is damaged; delete it and continue with --resume.") from error
    if version != _FORMAT:
        raise StoreError(f"{str(path)!r} has format {version!r}, this isotrope reads {_FORMAT}; update isotrope.")
    return run
