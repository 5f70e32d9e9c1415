"""A run folder: written atomically, checked when read, never pickled."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import StoreError
from isotrope.findings import Findings
from isotrope.runs.checkpoints import CHECKPOINT, Checkpoints, check_format, check_same_task, remove_if_empty
from isotrope.runs.retention import StatisticFiles
from isotrope.storage.files import (
    add_checksum,
    check_writable,
    has_valid_checksum,
    name_path_in_errors,
    read_document,
    remove,
    remove_leftovers,
    resolve_inside,
    sha256,
    sync,
    write_arrays,
    write_frame,
    write_text,
)
from isotrope.storage.locks import hold_lock

if TYPE_CHECKING:
    import pandas as pd

FINDINGS = "findings.json"
_STATISTICS, _TABLES = "statistics", "tables"

#: Where vectors that an endpoint has answered are kept.
VECTORS = "vectors"

#: What each file of statistics is of, and the hash of every file that is read again.
_INDEX = f"{_STATISTICS}/index.json"

#: The newest format of the statistics that this version reads: 1 has exact ones only, 2 has compact ones too.
_STATISTICS_FORMAT = 2

#: Small tables for people, which are written as CSV too.
_CSV_TOO = {"cosines"}

#: Where a finished run is written whole before its files are put in place.
_STAGE = ".unfinished"


class Run:
    """A run folder: findings.json, readings.csv and .parquet, statistics/, tables/, and a checkpoint while it runs.

    Where its rows are from an endpoint, their vectors are kept too, in vectors/.

    Args:
        folder: Path of the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.checkpoints = Checkpoints(self.folder)

    @property
    def finished(self) -> bool:
        """Whether the run is whole: its findings are put in place last."""
        return (self.folder / FINDINGS).exists()

    @property
    def resumable(self) -> bool:
        """Whether there is a whole checkpoint to go on from."""
        return self.checkpoints.has_whole()

    @property
    def has_vectors(self) -> bool:
        """Whether there are vectors of an endpoint to go on from."""
        return next((self.folder / VECTORS).glob("*/*.safetensors"), None) is not None

    def prepare(self, *, resume: bool) -> None:
        """Refuse a folder that cannot be written, or that holds another run; nothing is written yet."""
        check_writable(self.folder)
        self._check_links()
        self._check_other_run(resume)

    @contextmanager
    def reserve(self, *, resume: bool) -> Iterator[None]:
        """Prepare the folder, and keep it from every other process meanwhile."""
        check_writable(self.folder)
        with self.hold_lock():
            self._check_other_run(resume)
            yield

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Keep the folder from every other process, without what killed ones left in it."""
        with hold_lock(self.folder):
            self._check_links()
            self.remove_leftovers()
            yield

    def remove_leftovers(self) -> None:
        """Remove what killed processes left behind; only for who holds the lock of the folder or of one above it."""
        remove_leftovers(self.folder, FINDINGS, "readings.*", "report.html")
        remove_leftovers(self.folder / _STATISTICS, "*.safetensors", "index.json")
        remove_leftovers(self.folder / _TABLES, "*.parquet", "*.csv")
        for folder in (self.folder / VECTORS).glob("*"):
            remove_leftovers(folder, "*.safetensors", "*.json")
        remove(self.folder / _STAGE)
        self.checkpoints.remove_leftovers(everything=self.finished)
        if self.finished and self._index().get("keep") == "none":
            for path in (self.folder / _STATISTICS).glob("layer_*.safetensors"):
                remove(path)

    def _check_links(self) -> None:
        for name in (CHECKPOINT, _STATISTICS, _TABLES, VECTORS, _STAGE):
            resolve_inside(self.folder, name)

    def _check_other_run(self, resume: bool) -> None:
        if not resume and (self.finished or self.resumable):
            raise StoreError(
                f"the folder {str(self.folder)!r} already holds a run; "
                "choose another one with -o, continue it with --resume, or delete it."
            )

    def save(self, findings: Findings, statistics: StatisticFiles) -> None:
        """Write everything aside, then put it in place, the findings last: where they stand, the run is whole."""
        stage = self.folder / _STAGE
        shutil.rmtree(stage, ignore_errors=True)
        try:
            for name, arrays in statistics.arrays.items():
                write_arrays(stage / _STATISTICS / f"{name}.safetensors", arrays)
            for name, table in findings.tables.items():
                for ending in ("parquet", "csv") if name in _CSV_TOO else ("parquet",):
                    write_frame(stage / _TABLES / f"{name}.{ending}", table)
            frame = findings.to_frame()
            write_frame(stage / "readings.parquet", frame)
            write_frame(stage / "readings.csv", frame)
            write_text(stage / FINDINGS, findings.to_json())
            with name_path_in_errors(self.folder):
                hashes = {path.relative_to(stage).as_posix(): sha256(path) for path in stage.rglob("*.*")}
            kept = {"keep": statistics.keep, "files": statistics.contents}
            write_text(stage / _INDEX, add_checksum({"format": _STATISTICS_FORMAT, **kept, "sha256": hashes}))
            with name_path_in_errors(self.folder):
                for path in sorted(stage.iterdir(), key=lambda p: p.name == FINDINGS):
                    _replace(path, self.folder / path.name)
            sync(self.folder, self.folder.absolute().parent)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            remove_if_empty(self.checkpoints.folder, self.folder)
        self.remove_leftovers()

    def drop_statistics(self) -> None:
        """Remove the statistics of a finished run; its findings, tables and report stay."""
        index = self._index()
        names = [f"{_STATISTICS}/{name}.safetensors" for name in index.get("files", {})]
        hashes = {name: digest for name, digest in index.get("sha256", {}).items() if name not in names}
        # The index first: a process that is stopped in between leaves files that nobody misses.
        write_text(self.folder / _INDEX, add_checksum(index | {"keep": "none", "files": {}, "sha256": hashes}))
        for name in names:
            resolve_inside(self.folder, name).unlink(missing_ok=True)

    def add_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table that was worked out later, or write it again."""
        name_in_run = f"{_TABLES}/{name}.parquet"
        index = self._index()
        hashes = index.setdefault("sha256", {})
        # While it is replaced it has no hash: a process that is stopped in between leaves nothing that looks damaged.
        if hashes.pop(name_in_run, None) is not None:
            write_text(self.folder / _INDEX, add_checksum(index))
        write_frame(self.folder / name_in_run, table)
        with name_path_in_errors(self.folder / name_in_run):
            hashes[name_in_run] = sha256(self.folder / name_in_run)
        write_text(self.folder / _INDEX, add_checksum(index))

    def verify(self, path: Path, index: Mapping[str, Any] | None = None) -> None:
        """Refuse a file of the run that is not as it was written, or that lies elsewhere."""
        name = path.relative_to(self.folder).as_posix()
        resolve_inside(self.folder, name)
        digest = (self._index() if index is None else index).get("sha256", {}).get(name)
        with name_path_in_errors(path):
            if digest is not None and sha256(path) != digest:
                raise StoreError(f"{str(path)!r} is damaged or was changed: its checksum differs; run the scan again.")

    def statistics(self) -> list[tuple[str | None, int | str, Path]]:
        """The group and the layer that each file of statistics is of."""
        path = self.folder / _INDEX
        if not path.is_file():
            raise StoreError(f"the folder {str(self.folder)!r} is not a finished run (it has no {path.name}).")
        index = self._index()
        if index.get("keep") == "none":
            raise StoreError(
                f"the run {str(self.folder)!r} holds no statistics, because it was made with --keep none; "
                "scan again with --keep summary."
            )
        try:
            return [(group, layer, path.with_name(f"{n}.safetensors")) for n, (group, layer) in index["files"].items()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _index_error(path) from error

    def _index(self) -> dict[str, Any]:
        """What the index of a finished run says; nothing where there is none."""
        path = self.folder / _INDEX
        if not path.is_file():
            return {}
        index = read_document(path, _index_error(path))
        check_format(index.get("format"), path, _STATISTICS_FORMAT)
        # Runs from before there were checksums have neither of the two.
        if index.keys() & {"sha256", "checksum"} and not has_valid_checksum(index):
            raise _index_error(path)
        return index

    def findings(self) -> Findings:
        """What the run found, with its tables."""
        import pandas as pd

        path = self.folder / FINDINGS
        if not self.finished:
            what = "has not finished: continue it with --resume" if self.resumable else "is not a run"
            raise StoreError(f"the folder {str(self.folder)!r} {what} (it has no {FINDINGS}).")
        with name_path_in_errors(path):
            text = path.read_bytes()
        try:
            findings = Findings.from_json(text)
        except StoreError as error:
            raise StoreError(f"{str(path)!r} cannot be read: {error}") from error
        index = self._index()
        self.verify(path, index)
        for name in index.get("sha256", {}):
            if not (self.folder / name).is_file():
                raise StoreError(f"{str(self.folder / name)!r} is missing; run the scan again.")
        for table in sorted((self.folder / _TABLES).glob("*.parquet")):
            self.verify(table, index)
            try:
                with table.open("rb") as file:  # pyarrow itself opens no file whose name is not UTF-8
                    findings.tables[table.stem] = pd.read_parquet(file)
            except Exception as error:  # whatever pandas and pyarrow raise on a damaged file
                raise StoreError(f"the table {str(table)!r} is damaged; run the scan again.") from error
        return findings

    def load_finished(self, task: dict[str, Any]) -> Findings:
        """Load the findings of a finished run; refuse one of another input or with other options."""
        findings = self.findings()
        started = {"source": findings.source, "settings": findings.provenance.get("settings", {})}
        check_same_task(self.folder, task, started)
        return findings


def _replace(path: Path, target: Path) -> None:
    """Replace a file or folder by another."""
    if target.is_dir():
        shutil.rmtree(target)
    path.replace(target)


def _index_error(path: Path) -> StoreError:
    return StoreError(f"{str(path)!r} is damaged; run the scan again.")
