"""What is recorded of how a run came about: command, versions, platform and times, and no secrets."""

from __future__ import annotations

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

from isotrope.storage.redaction import masked_arguments, masked_facts
from isotrope.version import __version__

_PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors")


def command(arguments: Sequence[str]) -> str:
    """The command as typed, without secrets.

    >>> command(["/bin/isotrope", "scan", "https://me:word@host/a.npy"])
    "isotrope scan 'https://***@host/a.npy'"
    >>> command(["isotrope", "scan", "postgresql://me:pass word/@host/db"])
    "isotrope scan 'postgresql://***@host/db'"
    >>> command(["/lib/isotrope/__main__.py", "scan"])
    'isotrope scan'
    """
    program = Path(arguments[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *masked_arguments(arguments[1:])])


class Begun(NamedTuple):
    """When something began: by the clock on the wall, which may be set, and by one that only runs on."""

    at: datetime
    ticks: float


def begin() -> Begun:
    """Now."""
    return Begun(datetime.now(timezone.utc), time.monotonic())


def provenance(begun: Begun, settings: dict[str, Any], resumed: int) -> dict[str, Any]:
    """What is needed to repeat a run. resumed: the batches that an earlier process had done."""
    seconds = time.monotonic() - begun.ticks
    return {
        "command": command(sys.argv),
        "started": begun.at.isoformat(timespec="seconds"),
        "ended": (begun.at + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "resumed_at_batch": resumed or None,
        "versions": _versions(),
        "platform": platform.platform(),
        "settings": masked_facts(settings),
    }


def _versions() -> dict[str, str]:
    versions = {"isotrope": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
