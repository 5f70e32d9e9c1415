"""Files and folders that are written whole or not at all, with checksums; nothing is pickled."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, StoreError
from isotrope.formats.printable import format_csv

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]


#: Where a JSON document has the hash of all that it says.
_CHECKSUM = "checksum"

#: The names of files and folders that are being written, or are about to go.
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.\d+\.(?P<kind>part|old)")

#: What a FIFO is called, and the other things that are no files.
PIPE = "a pipe"
_KINDS = {stat.S_IFIFO: PIPE, stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def special_kind(path: str | Path) -> str | None:
    """Return what a path is if it is neither a file nor a folder, links followed; None also where nothing is there.

    >>> special_kind(__file__), special_kind("nothing here")
    (None, None)
    """
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    except (OSError, ValueError):
        return None


def check_regular(path: str | Path) -> None:
    """Refuse a pipe, a device or a socket, or a link to one; what is not there at all is left to who reads it."""
    kind = special_kind(path)
    if kind is not None:
        raise InputError(f"{str(path)!r} is {kind}, expected a regular file; copy what it holds into a file first.")


def check_regular_files(folder: Path) -> None:
    """Refuse a folder that holds such a thing, in it or one folder below."""
    for pattern in ("*", "*/*"):
        for path in folder.glob(pattern):
            check_regular(path)


@contextmanager
def name_path_in_errors(what: Path) -> Iterator[None]:
    """Turn what the system says into a sentence; a pipe or device in the place of a file is refused first."""
    check_regular(what)
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(f"the disk is full: {str(what)!r} could not be written; free some space.") from error
        raise StoreError(f"{str(what)!r} could not be written or read ({error.strerror or error}).") from error


def write_atomically(path: Path, write: Callable[[Path], object], *, new: bool = False) -> None:
    """Let `write` fill a file beside `path`, then put it in place at once; nothing is left on failure.

    new: never over a file that is there by then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with name_path_in_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if new and path.exists():
                raise StoreError(f"{str(path)!r} is there by now, and is never written over; choose another name.")
            temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_folder(folder: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` write into a folder beside `folder`, then put it in its place at once; nothing is left on failure."""
    temporary, previous = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    try:
        with name_path_in_errors(folder):
            temporary.mkdir(parents=True)
            fill(temporary)
            if folder.exists():
                folder.replace(previous)
            temporary.replace(folder)
        sync(folder.parent)
    finally:
        if previous.exists() and not folder.exists():  # stopped between the two
            previous.replace(folder)
        shutil.rmtree(previous, ignore_errors=True)
        shutil.rmtree(temporary, ignore_errors=True)


def check_writable(folder: Path, option: str = "-o") -> None:
    """Check that a folder, or the nearest parent that exists, can be written into. option: what names it."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise StoreError(f"{str(existing)!r} is a file; give a folder with {option}.")
    if not os.access(existing, os.W_OK):
        raise StoreError(f"nothing can be written into {str(existing)!r}; give another folder with {option}.")


def remove_leftovers(folder: Path, *patterns: str) -> None:
    """Remove what killed processes left half-written in a folder; only for who holds the lock of what is written there.

    Args:
        folder: Where to look; nothing happens where there is none.
        patterns: Names of the files and folders that were being written, such as "*.parquet".
    """
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        found = _LEFTOVER.fullmatch(path.name)
        if found is None or not any(fnmatchcase(found["name"], pattern) for pattern in patterns):
            continue
        target = path.with_name(found["name"])
        with name_path_in_errors(path):
            if found["kind"] == "old" and not target.exists():
                path.replace(target)  # stopped after the old folder had gone and before the new one came
            else:
                remove(path)


def remove_leftovers_of(target: Path) -> None:
    """Remove what killed processes left of one file or folder that they were writing; only for who holds its lock."""
    remove_leftovers(target.absolute().parent, escape(target.name))


def remove(path: Path) -> None:
    """Remove a file or a folder with what is in it; of a link only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync(*folders: Path) -> None:
    """Bring to the disk what folders hold by which name: what was put in place stays there through a power cut."""
    for folder in folders:
        with suppress(OSError):  # systems that cannot do that for folders keep them by ways of their own
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """A text as UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_bytes(text.encode("utf-8")))


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Named arrays as a safetensors file."""
    import numpy as np
    from safetensors.numpy import save

    data = {k: np.ascontiguousarray(v) for k, v in arrays.items()}
    write_atomically(path, lambda temporary: temporary.write_bytes(save(data)))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote, each a writable copy."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    with name_path_in_errors(path):
        try:
            return {k: v.copy() for k, v in load_file(path).items()}
        except SafetensorError as error:
            raise StoreError(f"{str(path)!r} is damaged or cut short ({error}); run again.") from error


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """A table as parquet or CSV, by the ending of the name."""
    if path.suffix == ".csv":
        write_text(path, format_csv(frame))
        return

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # pyarrow itself opens no file whose name is not UTF-8
            frame.to_parquet(file, index=False)

    write_atomically(path, write)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def add_checksum(document: Mapping[str, Any]) -> str:
    """A document as JSON with a hash of all that it says.

    >>> add_checksum({"a": 1})
    '{"a": 1, "checksum": "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310"}'
    """
    return json.dumps({**document, _CHECKSUM: _digest(document)})


def has_valid_checksum(document: Mapping[str, Any]) -> bool:
    """Whether a document says what it said when it was sealed.

    >>> import json
    >>> text = add_checksum({"batches": 3})
    >>> has_valid_checksum(json.loads(text)), has_valid_checksum(json.loads(text.replace("3,", "7,")))
    (True, False)
    """
    return document.get(_CHECKSUM) == _digest(document)


def _digest(document: Mapping[str, Any]) -> str:
    # Once to JSON and back: what is hashed is what will be read, with lists for tuples and text for keys.
    plain = json.loads(json.dumps({key: value for key, value in document.items() if key != _CHECKSUM}))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def resolve_inside(folder: Path, name: str) -> Path:
    """The path of a name in a folder; one that leads out of it, by itself or by a link, is refused.

    >>> resolve_inside(Path("run"), "../elsewhere")
    Traceback (most recent call last):
    isotrope.errors.StoreError: '../elsewhere' leads out of the folder 'run', which is refused; ...
    """
    path = folder / name
    with name_path_in_errors(path):
        if not path.resolve().is_relative_to(folder.resolve()):
            raise StoreError(f"{name!r} leads out of the folder {str(folder)!r}, which is refused; remove it.")
    return path


def read_document(path: Path, damaged: StoreError) -> dict[str, Any]:
    """Read a JSON object from a file; what is none raises the given error."""
    with name_path_in_errors(path):
        text = path.read_bytes()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged from error
    if not isinstance(document, dict):
        raise damaged
    return document
