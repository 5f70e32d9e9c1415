"""What is recorded of a file that was read: its path, size and hash."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

WHOLE = 64 * 2**20
END = 2**20


def file_facts(path: str | Path) -> dict[str, Any]:
    """Path as given, bytes and SHA-256 of a file; of a file above 64 MiB only its ends are hashed.

    `sha256_ends` is the hash of the first MiB, the last MiB and the size in decimal digits: hashing
    hundreds of gigabytes would cost more than the scan that they are recorded for.

    >>> file_facts(__file__)["path"] == __file__
    True
    """
    size = Path(path).stat().st_size
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        if size <= WHOLE:
            while block := stream.read(END):
                digest.update(block)
            return {"path": str(path), "bytes": size, "sha256": digest.hexdigest()}
        digest.update(stream.read(END))
        stream.seek(size - END)
        digest.update(stream.read(END))
        digest.update(str(size).encode())
        return {"path": str(path), "bytes": size, "sha256_ends": digest.hexdigest()}
