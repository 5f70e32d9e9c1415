"""Checksums: of files, and of small JSON documents that carry their own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SEAL = "checksum"


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sealed(document: Mapping[str, Any]) -> str:
    """A document as JSON with a hash of all that it says.

    >>> sealed({"a": 1})
    '{"a": 1, "checksum": "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310"}'
    """
    return json.dumps({**document, _SEAL: _digest(document)})


def is_sealed(document: Mapping[str, Any]) -> bool:
    """Whether a document says what it said when it was sealed.

    >>> import json
    >>> text = sealed({"batches": 3})
    >>> is_sealed(json.loads(text)), is_sealed(json.loads(text.replace("3,", "7,")))
    (True, False)
    """
    return document.get(_SEAL) == _digest(document)


def _digest(document: Mapping[str, Any]) -> str:
    # Once to JSON and back: what is hashed is what will be read, with lists for tuples and text for keys.
    plain = json.loads(json.dumps({key: value for key, value in document.items() if key != _SEAL}))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
