"""What runs where a system lacks modules and calls that only Unix has."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import StoreError
from isotrope.storage import locks
from isotrope.storage.locks import hold_lock, reserve_path

#: Hides modules and calls of Unix from isotrope and filelock; other libraries were built for this system and need them.
WITHOUT_UNIX = """
import builtins, importlib, os, pkgutil, signal, sys, types

MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix"}
CALLS = {"O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "fork", "geteuid", "getuid", "mkfifo"}
original = builtins.__import__
poor = types.ModuleType("os")
vars(poor).update({name: value for name, value in vars(os).items() if name not in CALLS})

def refuse(name, globals=None, locals=None, fromlist=(), level=0):
    if level == 0 and (globals or {}).get("__name__", "").partition(".")[0] in ("isotrope", "filelock"):
        if name in MISSING:
            raise ImportError(f"No module named {name!r}", name=name)
        if name == "os":
            return poor
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = refuse
"""

IMPORT_ALL = """
import isotrope
count = 0
for module in pkgutil.walk_packages(isotrope.__path__, "isotrope."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:  # a package that is not installed here
        assert error.name not in MISSING, f"{module.name} needs {error.name}"
    count += 1
print(count)
"""

SCAN = """
import numpy as np
from isotrope.scanner import scan
found = scan(vectors=np.random.default_rng(0).normal(size=(50, 3)), sample=20, output=sys.argv[1])
print(found.counts["rows"], sorted(os.listdir(sys.argv[1])))
"""


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestWithoutUnix:
    @pytest.mark.long
    def test_everything_can_be_imported(self) -> None:
        source = Path(isotrope.__file__).parent
        modules = [path for path in source.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")]
        packages = [path for path in source.rglob("__init__.py") if path.parent != source]
        assert int(_run(WITHOUT_UNIX + IMPORT_ALL)) == len(modules) + len(packages)

    def test_a_run_is_written_and_nothing_is_left(self, tmp_path: Path) -> None:
        said = _run(WITHOUT_UNIX + SCAN, str(tmp_path / "run"))
        assert said.startswith("50 [")
        assert ".lock" not in said

    def test_nothing_imports_a_module_of_unix_at_the_top(self) -> None:
        for path in Path(isotrope.__file__).parent.rglob("*.py"):
            for line in path.read_text("utf-8").splitlines():
                assert not line.startswith(("import fcntl", "import resource", "import pwd", "import grp")), path


class TestLocksElsewhere:
    """The lock on systems that cannot be asked not to follow links, that remove no open file, or lock no file."""

    def test_a_link_is_refused_without_the_flag(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "_NO_FOLLOW", 0)
        (tmp_path / "victim").write_text("mine")
        (tmp_path / "run").mkdir()
        (tmp_path / "run/.lock").symlink_to(tmp_path / "victim")
        with pytest.raises(StoreError, match="cannot be written"), hold_lock(tmp_path / "run"):
            pass
        assert (tmp_path / "victim").read_text() == "mine"

    def test_a_system_that_removes_no_open_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: set[int] = set()
        remove, begin, close = Path.unlink, os.open, os.close

        def unlink(path: Path, missing_ok: bool = False) -> None:
            if opened:
                raise PermissionError(errno.EACCES, "The file is in use")
            remove(path, missing_ok)

        def watched_open(*arguments: object) -> int:
            opened.add(number := begin(*arguments))  # type: ignore[arg-type]
            return number

        def watched_close(number: int) -> None:
            opened.discard(number)
            close(number)

        monkeypatch.setattr(Path, "unlink", unlink)
        monkeypatch.setattr(os, "open", watched_open)
        monkeypatch.setattr(os, "close", watched_close)
        with reserve_path(tmp_path / "out.npy"):
            assert (tmp_path / ".out.npy.lock").exists()
        assert list(tmp_path.iterdir()) == []
        assert not opened

    def test_a_first_byte_that_nobody_may_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As on Windows, where that is the byte that is locked; the number of the owner stands behind it."""
        read = os.read

        def refuse_first(number: int, size: int) -> bytes:
            if os.lseek(number, 0, os.SEEK_CUR) == 0:
                raise PermissionError(errno.EACCES, "The byte is locked")
            return read(number, size)

        monkeypatch.setattr(os, "read", refuse_first)
        with hold_lock(tmp_path), pytest.raises(StoreError, match=f"number {os.getpid()}"), hold_lock(tmp_path):
            pass

    @pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP])
    def test_a_system_without_locks(self, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_locks(lock: int, *, blocking: bool) -> bool:
            raise OSError(number, "no locks")

        monkeypatch.setattr(locks, "lock_descriptor", no_locks)
        with hold_lock(tmp_path / "run"):
            assert (tmp_path / "run/.lock").exists()
        assert list(tmp_path.iterdir()) == []

    def test_other_trouble_with_a_lock_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(lock: int, *, blocking: bool) -> bool:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(locks, "lock_descriptor", fail)
        with pytest.raises(StoreError, match="Input/output error"), hold_lock(tmp_path / "run"):
            pass

    def test_a_number_that_an_earlier_version_wrote(self, tmp_path: Path) -> None:
        with hold_lock(tmp_path):
            (tmp_path / ".lock").write_text("4711")
            with pytest.raises(StoreError, match=r"number 4711\)"), hold_lock(tmp_path):
                pass


def test_the_systems_that_are_declared() -> None:
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    for name in ("MacOS", "Microsoft :: Windows", "POSIX :: Linux"):
        assert f'"Operating System :: {name}"' in project
    assert '"filelock>=3.30"' in project
