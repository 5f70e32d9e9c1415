"""Files that cannot be read: skipped among many, and tried first where a library would end the whole process."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from isotrope.errors import InputError
from isotrope.sources.vectors.row_blocks import Block, name_file_in_errors

CHOICES = ("stop", "skip")

#: What the workers of a cluster do: each only tries to open the files, and what cannot be read later is skipped there.
SKIP_UNOPENED = "skip what cannot be opened"

#: Rows that are read together when a file is tried.
_ROWS = 1024

#: Seconds after which a try is given up; and bytes that it may take beside four times the size of the file.
_LONGEST, _ROOM = 600, 512 << 20

#: What the try ends with where that was not enough.
_TOO_MUCH = 3


def check_bad_files(bad_files: str) -> None:
    """Refuse what is neither of the two."""
    if bad_files not in (*CHOICES, SKIP_UNOPENED):
        raise InputError(f"there is no way {bad_files!r} with bad files; say {' or '.join(CHOICES)}.")


def open_files(
    paths: Sequence[str], open_file: Callable[[str], list[Block]], bad_files: str
) -> tuple[list[Block], dict[str, str]]:
    """The blocks of all files, and of those that were left out the reason, by path.

    To be left out, a file must be known to be bad before the first row is used: with "skip" each is read through
    once. Then rows keep their numbers, and a run that was stopped can go on. A file that is the only one is never left
    out.
    """
    if bad_files == "stop":
        return [block for path in paths for block in open_file(path)], {}
    blocks: list[Block] = []
    left_out: dict[str, str] = {}
    for path in paths:
        try:
            found = open_file(path)
            if bad_files != SKIP_UNOPENED:
                for block in found:
                    _read_through(block)
            blocks += found
        except InputError as error:
            left_out[path] = str(error)
    if not blocks:
        raise InputError(f"none of {len(paths):,} files can be read; the first: {next(iter(left_out.values()))}")
    return blocks, left_out


def _read_through(block: Block) -> None:
    with name_file_in_errors(block.name):
        rows = sum(len(values) for values, _ in block.pieces(0, _ROWS))
        if rows != block.rows:
            raise ValueError(f"it announced {block.rows} rows and holds {rows}")


def check_safe_to_read(path: str, read: Callable[[], object], seconds: float = 0.0) -> None:
    """Refuse a file whose reading kills the process that tries it; an ordinary error is left to who reads it next.

    The try is a copy of this process (fork), which takes milliseconds, so that it is made where the system has one.
    seconds: of a processor's time that reading may take, for libraries that go round in circles; 0 for any.

    >>> check_safe_to_read("whole.faiss", lambda: None)
    >>> check_safe_to_read("boasting.faiss", lambda: bytes(1 << 40))
    Traceback (most recent call last):
    isotrope.errors.InputError: boasting.faiss asks for far more memory than its size explains; write the file again.
    >>> check_safe_to_read("cut.faiss", lambda: os.kill(os.getpid(), signal.SIGSEGV))
    Traceback (most recent call last):
    isotrope.errors.InputError: cut.faiss is damaged or cut short (SIGSEGV while it was read); write the file again.
    """
    if not hasattr(os, "fork"):
        return
    with warnings.catch_warnings():  # Python and LanceDB warn of threads that the copy lacks; it only reads, and ends
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(_LONGEST)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            _limit_memory(path)
            read()
        except MemoryError:
            os._exit(_TOO_MUCH)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        what = "reading it does not end" if name in ("SIGPROF", "SIGALRM") else f"{name} while it was read"
        raise InputError(f"{path} is damaged or cut short ({what}); write the file again.")
    if os.waitstatus_to_exitcode(status) == _TOO_MUCH:
        raise InputError(f"{path} asks for far more memory than its size explains; write the file again.")


def _limit_memory(path: str) -> None:
    """Let this process take so much more than it has, on systems that have such a limit."""
    try:
        import resource
    except ImportError:
        return
    size = os.path.getsize(path) if os.path.exists(path) else 0
    pages = Path("/proc/self/statm")
    if pages.exists():  # Linux: elsewhere nobody tells how much there is already
        taken = int(pages.read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = taken + 4 * size + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
