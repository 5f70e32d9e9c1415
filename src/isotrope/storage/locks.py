"""What one process at a time may write; the system frees it when that process ends, however it ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from isotrope.errors import StoreError

#: The lock of a folder lies in it, that of a file beside it.
NAME = ".lock"

#: How often a folder may be gone again before its lock is in it.
_TRIES = 100

#: What file systems answer that know no locks, such as some network shares; there, nothing can be refused.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)

#: Not to follow a link that lies in the place of the lock, on systems that can be asked so.
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def hold_lock(folder: str | Path) -> Iterator[None]:
    """Keep a folder, which is made where it is missing, from all other processes; one that is in use is refused.

    What is left of a process that was killed does not stand in the way: its lock dies with it and what it forked.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with hold_lock(folder), hold_lock(folder):
    ...     pass
    Traceback (most recent call last):
    isotrope.errors.StoreError: '...' is being written by another process (number ...); wait until it has ended, ...
    """
    with _hold_lock_file(Path(folder).absolute() / NAME, str(folder)):
        yield


@contextmanager
def reserve_path(path: str | Path) -> Iterator[None]:
    """Keep the name of a file or folder that is not there yet from all other processes, until it has been written."""
    target = Path(path).absolute()
    with _hold_lock_file(target.with_name(f".{target.name}{NAME}"), str(path)):
        yield


@contextmanager
def _hold_lock_file(path: Path, what: str) -> Iterator[None]:
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        try:
            lock = _lock(path, what)
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(f"{what!r} cannot be written ({reason}); choose another place for it.") from error
        try:
            yield
        finally:
            _free(path, lock)
    finally:
        for folder in missing:  # no folder is left behind that was made for nothing
            with suppress(OSError):
                folder.rmdir()


def _lock(path: Path, what: str) -> int:
    """The descriptor of a file that is locked and still in its place."""
    gone = 0
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _NO_FOLLOW and path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o644)
        except FileNotFoundError:  # another process, just ending, has taken its empty folder away
            gone += 1
            if gone == _TRIES:  # a folder in which nothing can be made, such as /proc/self
                raise
            continue
        try:
            _ask(lock, what)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(path, follow_symlinks=False)):
                    _sign(lock)
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _ask(lock: int, what: str) -> None:
    """Lock a file, or refuse with the name of the process that has locked it."""
    try:
        free = lock_descriptor(lock, blocking=False)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return
    if not free:
        owner = _owner(lock)
        raise StoreError(
            f"{what!r} is being written by another process ({f'number {owner}' if owner else 'just begun'}); "
            "wait until it has ended, or choose another name."
        )


def _owner(lock: int) -> str:
    """The number of the process that has locked a file, empty where it has not written it down yet."""
    for start in (0, 1):  # Windows lets nobody read the first byte, which is the one that it locks
        with suppress(OSError):
            os.lseek(lock, start, os.SEEK_SET)
            return os.read(lock, 20).decode("ascii", "replace").strip()
    return ""


def _sign(lock: int) -> None:
    """Write down the number of this process behind the first byte, for the sentence that others get."""
    os.ftruncate(lock, 0)
    with suppress(OSError):  # a full disk: it locks without the number too
        os.write(lock, f" {os.getpid()}".encode())


def _free(path: Path, lock: int) -> None:
    """Remove a lock, and only then let it go: who opened it meanwhile sees that it is gone, and makes a new one."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # Windows removes no file that is open, be it here or in the process that has it next
        os.close(lock)
        with suppress(OSError):
            path.unlink()
    else:
        os.close(lock)
