"""What is recorded of a run, without secrets: command, versions, platform, times, and the files that were read."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.storage.files import sha256
from isotrope.storage.redaction import mask_arguments, mask_facts
from isotrope.version import __version__

#: Bytes up to which a file is hashed whole, and bytes of each end that are hashed of a larger one.
_WHOLE_BYTES, _END_BYTES = 64 * 2**20, 2**20

_PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors")


def format_command(arguments: Sequence[str]) -> str:
    """The command as typed, without secrets.

    >>> format_command(["/bin/isotrope", "scan", "https://me:word@host/a.npy"])
    "isotrope scan 'https://***@host/a.npy'"
    >>> format_command(["isotrope", "scan", "postgresql://me:pass word/@host/db"])
    "isotrope scan 'postgresql://***@host/db'"
    >>> format_command(["/lib/isotrope/__main__.py", "scan"])
    'isotrope scan'
    """
    program = Path(arguments[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *mask_arguments(arguments[1:])])


class StartTime(NamedTuple):
    """When something began: by the clock on the wall, which may be set, and by one that only runs on."""

    at: datetime
    ticks: float


def record_start() -> StartTime:
    """Record the time at which something starts."""
    return StartTime(datetime.now(timezone.utc), time.monotonic())


def describe_provenance(start: StartTime, settings: dict[str, Any], resumed: int) -> dict[str, Any]:
    """Describe what is needed to repeat a run.

    Args:
        start: When it started.
        settings: What the numbers depend on, apart from the input.
        resumed: How many batches an earlier process had done.
    """
    seconds = time.monotonic() - start.ticks
    return {
        "command": format_command(sys.argv),
        "started": start.at.isoformat(timespec="seconds"),
        "ended": (start.at + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "resumed_at_batch": resumed or None,
        "versions": _versions(),
        "platform": platform.platform(),
        "settings": mask_facts(settings),
    }


def _versions() -> dict[str, str]:
    versions = {"isotrope": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def describe_file(path: str | Path) -> dict[str, Any]:
    """Path as given, bytes and SHA-256 of a file; of a file above 64 MiB only its ends are hashed.

    `sha256_ends` is the hash of the first MiB, the last MiB and the size in decimal digits: hashing
    hundreds of gigabytes would cost more than the scan that they are recorded for.

    >>> describe_file(__file__)["path"] == __file__
    True
    """
    size = Path(path).stat().st_size
    if size <= _WHOLE_BYTES:
        return {"path": str(path), "bytes": size, "sha256": sha256(Path(path))}
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        digest.update(stream.read(_END_BYTES))
        stream.seek(size - _END_BYTES)
        digest.update(stream.read(_END_BYTES))
        digest.update(str(size).encode())
    return {"path": str(path), "bytes": size, "sha256_ends": digest.hexdigest()}
