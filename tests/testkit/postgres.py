"""A PostgreSQL server of the test's own, from the binaries that are installed, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
_EXTENSIONS = "/usr/share/postgresql/{}/extension/vector.control"


def binaries() -> Path:
    """The folder of the newest PostgreSQL that has pgvector; without one the test is skipped and says so."""
    with_pgvector = [p.parent for p in _BINARIES if Path(_EXTENSIONS.format(p.parent.parent.name)).exists()]
    if not with_pgvector:
        lacks = "pgvector" if _BINARIES else "PostgreSQL"
        pytest.skip(f"{lacks} is not installed here; .ci/postgresql installs both on Debian")
    return with_pgvector[-1]


@contextmanager
def server() -> Iterator[Path]:
    """A running server that is reached by a socket in the folder this gives, and by nothing else; user "postgres"."""
    folder, programs = Path(tempfile.mkdtemp(prefix="pg")), binaries()
    other = _unprivileged()
    data, log = folder / "data", folder / "log"

    def run(program: str, *arguments: str) -> None:
        found = subprocess.run(
            [programs / program, *arguments], user=other, group=other and pwd.getpwuid(other).pw_gid,
            extra_groups=None if other is None else [], cwd=folder, capture_output=True, text=True, timeout=60,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout + found.stderr + (log.read_text() if log.exists() else "")

    try:
        if other is not None:
            os.chown(folder, other, -1)
        folder.chmod(0o755)
        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB"
        run("pg_ctl", "-D", str(data), "-l", str(log), "-w", "-o", options, "start")
        try:
            yield folder
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> int | None:
    """The user that PostgreSQL runs as where we are root, as whom it refuses to run."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return known.get("postgres", known["nobody"])
