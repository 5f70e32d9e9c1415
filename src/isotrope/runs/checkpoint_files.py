"""The checkpoints in a run folder: each whole or ignored, the newest replaces the one before."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import StoreError
from isotrope.findings import FORMAT
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

#: The folder of the checkpoints in a run folder.
CHECKPOINT = "checkpoint"

#: The file that is written last: a checkpoint without it never happened.
_STATE = "state.json"


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
