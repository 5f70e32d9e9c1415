"""One fine-tuned model of a GLUE evaluation as plain data, and the folder where each is a file of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from isotrope.errors import StoreError
from isotrope.finetuning.methods import METHODS, family
from isotrope.finetuning.tasks import TASKS
from isotrope.storage.files import name_path_in_errors, write_text

_FORMAT = 1

#: Where a folder keeps its runs.
RUNS = "runs"


@dataclass(frozen=True)
class GlueRun:
    """What one task, method and seed gave.

    scores: by metric, those of MNLI's mismatched rows with "_mismatched" behind their names, shares of 1; None where
    undefined. held_out: the task's score on held-out rows after each epoch, and `epoch` the one that was kept (from
    1). alphas: steps and α's of SoftDecay. spectra: "pretrained", and "trained" with "into softdecay" and "out of
    softdecay", see `isotrope.finetuning.token_spectra`. settings: all that must be the same for runs to be compared.
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
    """Where a run is kept."""
    return folder / RUNS / f"{task}.{method.replace(':', '.')}.seed={seed}.json"


def write_run(folder: Path, run: GlueRun) -> None:
    """Write a run, whole or not at all."""
    write_text(run_file(folder, *run.key), json.dumps({"format": _FORMAT} | asdict(run), allow_nan=False))


def read_runs(folder: Path) -> list[GlueRun]:
    """All runs that a folder holds, in the order of their files' names."""
    return [_read(path) for path in sorted((folder / RUNS).glob("*.json"))]


def prepare(folder: Path, *, resume: bool) -> list[GlueRun]:
    """The runs that a folder holds already; refused without `resume`, and where nothing can be written."""
    found = read_runs(folder)
    if found and not resume:
        raise StoreError(
            f"the folder {str(folder)!r} already holds {len(found):,} runs; "
            "choose another one with -o, continue it with --resume, or delete it."
        )
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise StoreError(f"{str(there)!r} is a file; give a folder for the runs with -o.")
    if not os.access(there, os.W_OK):
        raise StoreError(f"nothing can be written into {str(there)!r}; give another folder with -o.")
    return found


def refuse_other(runs: Iterable[GlueRun], task: str, settings: dict[str, Any]) -> None:
    """Refuse to go on with runs of a task that were trained otherwise: they could not be compared."""
    for run in runs:
        for name in settings if run.task == task else ():
            before, now = run.settings.get(name), settings[name]
            if before != now:
                raise StoreError(
                    f"earlier runs of {task} in this folder have {name.replace('_', ' ')} {before}, now it is {now}; "
                    "say the same, or choose another folder with -o."
                )


def _read(path: Path) -> GlueRun:
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
