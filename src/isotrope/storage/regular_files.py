"""Pipes, devices and sockets in the place of files, which a reader would wait for or read without end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from isotrope.errors import InputError

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
