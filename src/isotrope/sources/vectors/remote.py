"""Files in object stores and other places that fsspec knows, by URL: s3://, gs://, https://, file://, memory://.

Arrays in .npy and tables in .parquet are read in pieces where they are; other files are copied to this machine first.
"""

from __future__ import annotations

import atexit
import math
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, MissingExtra, describe_error
from isotrope.sources.vectors.array_files import FileRows, check_no_names, check_size, npy_header
from isotrope.sources.vectors.row_blocks import (
    PICKLED,
    Block,
    BlockEntry,
    dtype_label,
    entry_block,
    name_file_in_errors,
)
from isotrope.sources.vectors.stores.address import begins_as_address
from isotrope.storage.redaction import mask_secrets

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


def is_url(place: object) -> bool:
    """Whether something is a URL of a file system that fsspec knows.

    >>> is_url("s3://bucket/rows.npy"), is_url("rows.npy"), is_url("postgresql://host/table")
    (True, False, False)
    """
    found = _URL.match(place) if isinstance(place, str) else None
    if found is None or begins_as_address(found.string):  # stores need no fsspec
        return False
    return found[1].lower() in _fsspec().available_protocols()


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtra("fsspec", "files", "reading from a URL") from error
    return fsspec


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path on it; packages that it needs are named."""
    with name_file_in_errors(mask_secrets(url)):
        try:
            system, path = _fsspec().core.url_to_fs(url)
        except ImportError as error:
            raise InputError(f"{mask_secrets(url)} needs another package: {describe_error(error)}.") from error
        return system, str(path)


def list_remote_files(url: str, endings: tuple[str, ...]) -> list[str]:
    """The file itself, or those with such endings in a folder, in the order of their names."""
    system, path = _system(url)
    with name_file_in_errors(mask_secrets(url)):
        if not system.isdir(path):
            return [url]
        names = sorted(name for name in system.ls(path, detail=False) if Path(name).suffix.lower() in endings)
    if not names:
        raise InputError(f"{mask_secrets(url)} holds no file that ends in {', '.join(endings)}: check the URL.")
    return [str(system.unstrip_protocol(name)) for name in names]


def describe_remote(url: str) -> dict[str, Any]:
    """URL, size and a key of a remote file that changes with it, where the file system has one."""
    system, path = _system(url)
    with name_file_in_errors(mask_secrets(url)):
        return {"path": mask_secrets(url), "bytes": system.size(path), "key": str(system.ukey(path))}


def open_url(
    url: str, opener: Callable[[Path, str | None, str | None], list[Block]], column: str | None, group_by: str | None
) -> list[Block]:
    """The blocks of a remote file of vectors."""
    shown = mask_secrets(url)
    system, path = _system(url)
    with name_file_in_errors(shown):
        if not system.isfile(path):
            raise InputError(f"there is no file {shown}: check the URL.")
        if Path(path).suffix.lower() == ".npy":
            return [_npy(shown, system, path, column, group_by)]
        if Path(path).suffix.lower() == ".parquet":
            from isotrope.sources.vectors.table_files import open_parquet

            return open_parquet(RemoteFile(shown, partial(system.open, path, "rb")), column, group_by)
        return opener(download(url), column, group_by)


class RemoteFile:
    """A name that can be opened for reading bytes, and is shown without secrets."""

    def __init__(self, shown: str, begin: Callable[[], Any]) -> None:
        self._shown, self.begin = shown, begin

    def __str__(self) -> str:
        return self._shown


def _npy(shown: str, system: Any, path: str, column: str | None, group_by: str | None) -> Block:
    check_no_names(f"{shown} is a .npy file, which", column, group_by)
    with system.open(path, "rb") as file:
        shape, fortran, dtype = npy_header(file)
        offset = file.tell()
    if dtype.hasobject:
        return entry_block(shown, BlockEntry(shape, PICKLED, nullcontext))
    if fortran:
        raise InputError(f"{shown} is stored by columns; copy it here first, or save it with np.ascontiguousarray.")
    check_size(math.prod(shape) * dtype.itemsize, system.size(path) - offset)
    rows = FileRows(partial(system.cat_file, path), dtype, offset, shape)
    return entry_block(shown, BlockEntry(shape, dtype_label(dtype), partial(nullcontext, rows)))


@lru_cache
def _folder() -> Path:
    """Where copies are until this process ends."""
    folder = tempfile.mkdtemp(prefix="isotrope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def download(url: str) -> Path:
    """A copy of a remote file or folder on this machine, made once and gone with this process."""
    system, path = _system(url)
    with name_file_in_errors(mask_secrets(url)):
        target = Path(tempfile.mkdtemp(dir=_folder())) / (Path(path).name or "data")
        if system.isdir(path):
            system.get(path.rstrip("/") + "/", str(target) + "/", recursive=True)
        elif system.exists(path):
            system.get_file(path, str(target))
        else:
            raise InputError(f"there is nothing at {mask_secrets(url)}: check the URL.")
    return target


def describe_url(facts: Callable[[], dict[str, Any]], here: Path, url: str) -> dict[str, Any]:
    """What is recorded of a copy, under the name of what it is a copy of."""

    def replace_name(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replace_name(one) for key, one in value.items()}
        if isinstance(value, list):
            return [replace_name(one) for one in value]
        return value.replace(str(here), mask_secrets(url).rstrip("/")) if isinstance(value, str) else value

    found: dict[str, Any] = replace_name(facts())
    return found
