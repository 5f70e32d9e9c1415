"""A run folder: written atomically, checked when read, never pickled."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import StoreError
from isotrope.findings import FORMAT, Findings

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

FINDINGS = "findings.json"
_CHECKPOINT = "checkpoint"


@contextmanager
def _told(what: Path) -> Iterator[None]:
    """Turn what the system says into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"the disk is full: {str(what)!r} could not be written; free some space.") from error
        raise StoreError(f"{str(what)!r} could not be written or read ({error.strerror or error}).") from error


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, then put it in place at once; nothing is left on failure."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(beside)
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda p: _write_bytes(p, text.encode("utf-8")))


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def write_arrays(path: Path, arrays: Arrays, facts: Mapping[str, str] | None = None) -> None:
    """Named arrays as a safetensors file."""
    import numpy as np
    from safetensors.numpy import save

    data = {k: np.ascontiguousarray(v) for k, v in arrays.items()}
    write_atomically(path, lambda p: _write_bytes(p, save(data, metadata=dict(facts or {}))))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote, each a writable copy."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    with _told(path):
        try:
            return {k: v.copy() for k, v in load_file(path).items()}
        except SafetensorError as error:
            raise StoreError(f"{str(path)!r} is damaged or cut short ({error}); run again.") from error


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """A table as parquet or CSV, by the ending of the name."""
    if path.suffix == ".csv":
        write_atomically(path, lambda p: frame.to_csv(p, index=False))
    else:
        write_atomically(path, lambda p: frame.to_parquet(p, index=False))


class Run:
    """A run folder: findings.json, readings.csv and .parquet, statistics/, tables/, and a checkpoint while it runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def prepare(self, *, resume: bool) -> None:
        """Refuse a folder that holds another run; nothing is written yet."""
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{str(self.folder)!r} is a file; give a folder for the run with -o.")
        if resume:
            return
        if (self.folder / FINDINGS).exists() or (self.folder / _CHECKPOINT).exists():
            raise StoreError(
                f"the folder {str(self.folder)!r} already holds a run; "
                "choose another one with -o, continue it with --resume, or delete it."
            )

    def save(self, findings: Findings, statistics: Mapping[str, Arrays], index: Mapping[str, Any]) -> None:
        """Write everything, the findings last: where they stand, the run is whole.

        index: what each of the statistics is of, by its file's name.
        """
        for name, arrays in statistics.items():
            write_arrays(self.folder / "statistics" / f"{name}.safetensors", arrays)
        write_text(self.folder / "statistics" / "index.json", json.dumps({"format": FORMAT, "files": index}))
        for name, table in findings.tables.items():
            write_frame(self.folder / "tables" / f"{name}.parquet", table)
        frame = findings.to_frame()
        write_frame(self.folder / "readings.parquet", frame)
        write_frame(self.folder / "readings.csv", frame)
        write_text(self.folder / FINDINGS, findings.to_json())
        with _told(self.folder):
            shutil.rmtree(self.folder / _CHECKPOINT, ignore_errors=True)

    def checkpoint(self, state: Mapping[str, Any], statistics: Mapping[str, Arrays]) -> None:
        """Keep what has been counted so far; the one before stays until this one is whole."""
        base = self.folder / _CHECKPOINT
        number = max(self._numbers(), default=0) + 1
        target = base / f"{number:08d}"
        files = {}
        try:
            for name, arrays in statistics.items():
                path = target / f"{name}.safetensors"
                write_arrays(path, arrays)
                files[name] = _sha256(path)
            # The state is written last: a checkpoint without it never happened.
            write_text(target / "state.json", json.dumps({"format": FORMAT, "files": files, **state}))
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        for older in self._numbers():
            if older < number:
                shutil.rmtree(base / f"{older:08d}", ignore_errors=True)

    def last_checkpoint(self) -> tuple[dict[str, Any], dict[str, dict[str, NDArray[Any]]]] | None:
        """The newest whole checkpoint, its files checked against their hashes; None where there is none."""
        for number in sorted(self._numbers(), reverse=True):
            target = self.folder / _CHECKPOINT / f"{number:08d}"
            if not (target / "state.json").exists():
                continue
            with _told(target):
                try:
                    state = json.loads((target / "state.json").read_text("utf-8"))
                    files: dict[str, str] = state["files"]
                except (ValueError, KeyError, TypeError) as error:
                    raise StoreError(f"the checkpoint {str(target)!r} is damaged; delete it to begin anew.") from error
            _known_format(state.get("format"), target)
            statistics = {}
            for name, digest in files.items():
                path = target / f"{name}.safetensors"
                if not path.exists() or _sha256(path) != digest:
                    raise StoreError(f"the checkpoint file {str(path)!r} is damaged; delete it to begin anew.")
                statistics[name] = read_arrays(path)
            return state, statistics
        return None

    def _numbers(self) -> list[int]:
        base = self.folder / _CHECKPOINT
        return [int(p.name) for p in base.glob("[0-9]*") if p.name.isdigit()] if base.is_dir() else []

    def findings(self) -> Findings:
        """What the run found, with its tables."""
        import pandas as pd

        path = self.folder / FINDINGS
        if not path.exists():
            what = "has not finished: continue it with --resume" if self._numbers() else "is not a run"
            raise StoreError(f"the folder {str(self.folder)!r} {what} (it has no {FINDINGS}).")
        with _told(path):
            findings = Findings.from_json(path.read_text("utf-8"))
        for table in sorted((self.folder / "tables").glob("*.parquet")):
            findings.tables[table.stem] = pd.read_parquet(table)
        return findings


def _known_format(version: Any, path: Path) -> None:
    if not isinstance(version, int) or version > FORMAT:
        raise StoreError(
            f"{str(path)!r} has format {version!r}, this isotrope reads up to {FORMAT}; "
            "update isotrope (pip install -U isotrope)."
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with _told(path), path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
