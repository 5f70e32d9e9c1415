"""Checkpoints of a scan: each whole or ignored, and continued only with the same input and options."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isotrope.errors import StoreError
from isotrope.findings import FORMAT
from isotrope.runs.retention import Arrays, exact_arrays, name_files
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Summary, Wanted
from isotrope.storage.files import (
    add_checksum,
    has_valid_checksum,
    name_path_in_errors,
    read_arrays,
    read_document,
    resolve_inside,
    sha256,
    sync,
    write_arrays,
    write_text,
)
from isotrope.storage.redaction import mask_facts

#: The folder of the checkpoints in a run folder.
CHECKPOINT = "checkpoint"

#: The file that is written last: a checkpoint without it never happened.
_STATE = "state.json"

#: What runs of earlier versions did not say.
_BEFORE = {"engine": "local"}

#: Measures of moments that version 0.1 did not have: a scan that it began is resumed with them.
_ADDED = ("norm_variation", "participation_ratio")


class Checkpoints:
    """The numbered checkpoints of a run that has not finished."""

    def __init__(self, run_folder: Path) -> None:
        self.run_folder = run_folder
        self.folder = run_folder / CHECKPOINT

    def has_whole(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return any(self._is_whole(number) for number in self._numbers())

    def write(self, state: Mapping[str, Any], statistics: Mapping[str, Arrays]) -> None:
        """Write what has been collected so far; the checkpoint before stays until this one is whole."""
        number = max(self._numbers(), default=0) + 1
        target = self._path(number)
        files = {}
        try:
            for name, arrays in statistics.items():
                path = target / f"{name}.safetensors"
                write_arrays(path, arrays)
                with name_path_in_errors(path):
                    files[name] = sha256(path)
            write_text(target / _STATE, add_checksum({"format": FORMAT, "files": files, **state}))
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            remove_if_empty(self.folder, self.run_folder)
            raise
        # The folders themselves may be new; only then is the checkpoint before this one not needed any more.
        sync(self.folder, self.run_folder, self.run_folder.absolute().parent)
        for older in self._numbers():
            if older < number:
                self._remove(older)

    def read_last(self) -> tuple[dict[str, Any], dict[str, dict[str, NDArray[Any]]]] | None:
        """Read the newest whole checkpoint, its files checked against their hashes; None where there is none."""
        for number in sorted(filter(self._is_whole, self._numbers()), reverse=True):
            target = self._path(number)
            state = read_document(target / _STATE, _damage_error(target / _STATE))
            check_format(state.get("format"), target, FORMAT)
            if not has_valid_checksum(state):
                raise _damage_error(target / _STATE)
            statistics = {}
            for name, digest in state["files"].items():
                path = resolve_inside(target, f"{name}.safetensors")
                with name_path_in_errors(path):
                    if not path.exists() or sha256(path) != digest:
                        raise _damage_error(path, target)
                statistics[name] = read_arrays(path)
            return state, statistics
        return None

    def remove_leftovers(self, *, everything: bool) -> None:
        """Remove checkpoints that are not whole, or all of them, and the folder if it is empty then."""
        for number in self._numbers():
            if everything or not self._is_whole(number):
                self._remove(number)
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}"

    def _numbers(self) -> list[int]:
        there = self.folder.glob("[0-9]*") if self.folder.is_dir() else ()
        return [int(path.name) for path in there if path.name.isdigit()]

    def _is_whole(self, number: int) -> bool:
        return (self._path(number) / _STATE).exists()

    def _remove(self, number: int) -> None:
        shutil.rmtree(self._path(number), ignore_errors=True)


def describe_task(source: Source, settings: dict[str, Any]) -> dict[str, Any]:
    """Describe, as plain data, what must be the same for a run to be continued."""
    facts = mask_facts({"source": source.describe(), "settings": settings})
    task: dict[str, Any] = json.loads(json.dumps(facts))
    return task


def _leave_out_added(name: str, now: Any, started: dict[str, Any]) -> Any:
    """A setting without the measures that groups have had since version 0.1, where that version began the run."""
    if name != "measures":
        return now
    return [measure for measure in now if measure not in _ADDED or measure in started.get(name, ())]


def check_same_task(folder: Path, task: dict[str, Any], started: dict[str, Any]) -> None:
    """Refuse to continue a run that was started with another input or with other options."""
    differing = [
        name
        for part in ("source", "settings")
        for name in task[part]
        if _leave_out_added(name, task[part][name], started[part]) != started[part].get(name, _BEFORE.get(name))
    ]
    if differing:
        raise StoreError(
            f"the run in {str(folder)!r} was begun with other {', '.join(differing)}; "
            "resume with the same command, or choose another folder with -o."
        )


def save_checkpoint(checkpoints: Checkpoints, task: dict[str, Any], now: Collection) -> None:
    """Write what has been collected so far."""
    done = {"batches": now.batches, "shards": now.shards, "counts": dict(now.counts)}
    done["skipped"] = list(now.skipped.items())
    checkpoints.write({"task": task, **done, "index": name_files(now)}, exact_arrays(now))


def load_checkpoint(checkpoints: Checkpoints, task: dict[str, Any], wanted: Wanted) -> Collection:
    """Load what the last checkpoint holds; an empty collection where there is none."""
    found = checkpoints.read_last()
    if found is None:
        return Collection(wanted)
    state, saved = found
    try:
        check_same_task(checkpoints.run_folder, task, state["task"])
        collection = Collection(wanted, batches=int(state["batches"]), shards=int(state.get("shards", 0)))
        collection.counts.update(state["counts"])
        collection.skipped.update(state.get("skipped", ()))
        for name, (group, layer) in state["index"].items():
            collection.summaries[group, layer] = Summary.from_arrays(saved[name])
        return collection
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"the checkpoint of the run in {str(checkpoints.run_folder)!r} cannot be used ({error!r}); "
            "delete its folder 'checkpoint' to begin anew."
        ) from error


def remove_if_empty(*folders: Path) -> None:
    """Leave no empty folder behind where nothing could be written."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def check_format(version: Any, path: Path, newest: int) -> None:
    """Refuse a file that a newer isotrope wrote."""
    if not isinstance(version, int) or version > newest:
        raise StoreError(
            f"{str(path)!r} has format {version!r}, this isotrope reads up to {newest}; "
            "update isotrope (pip install -U isotrope)."
        )


def _damage_error(path: Path, checkpoint: Path | None = None) -> StoreError:
    folder = checkpoint or path.parent
    return StoreError(f"the checkpoint file {str(path)!r} is damaged; delete {str(folder)!r} to begin anew.")
