"""What is recorded of how a run came about: command, versions, platform and times, and no secrets."""

from __future__ import annotations

import platform
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from isotrope import __version__

_PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors")

#: What must not be written down: a password in an address, a token of the hub, the value of an option for either.
_SECRETS = (
    (re.compile(r"(?<=://)[^/\s@]+@"), "***@"),
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), "hf_***"),
    (re.compile(r"(?i)((?:token|password|secret|api[_-]?key)=)[^&\s]+"), r"\1***"),
)


def masked(arguments: Sequence[str]) -> str:
    """The command as typed, without secrets.

    >>> masked(["/bin/isotrope", "scan", "https://me:word@host/a.npy"])
    "isotrope scan 'https://***@host/a.npy'"
    >>> masked(["/lib/isotrope/__main__.py", "scan"])
    'isotrope scan'
    """
    program = Path(arguments[0])
    command = [program.parent.name if program.name == "__main__.py" else program.name, *arguments[1:]]
    return shlex.join(map(without_secrets, command))


def without_secrets(text: str) -> str:
    """A text such as a URL with what must not be written down replaced by stars.

    >>> without_secrets("s3://key:word@bucket/a.npy")
    's3://***@bucket/a.npy'
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def provenance(started: datetime, settings: dict[str, Any], resumed: int) -> dict[str, Any]:
    """What is needed to repeat a run. resumed: the batches that an earlier process had done."""
    ended = datetime.now(timezone.utc)
    return {
        "command": masked(sys.argv),
        "started": started.isoformat(timespec="seconds"),
        "ended": ended.isoformat(timespec="seconds"),
        "seconds": round((ended - started).total_seconds(), 3),
        "resumed_at_batch": resumed or None,
        "versions": _versions(),
        "platform": platform.platform(),
        "settings": settings,
    }


def _versions() -> dict[str, str]:
    versions = {"isotrope": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
