"""Files on which a library ends the whole process, or asks for all memory: tried in a process of its own first."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

from isotrope.errors import InputError

#: Seconds after which a try is given up; and bytes that it may take beside four times the size of the file.
_LONGEST, _ROOM = 600, 512 << 20

#: What the try ends with where that was not enough.
_TOO_MUCH = 3


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
