"""Columns of vectors as embedding services send them to save space: base64 of little-endian float32 numbers."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

#: What services call the field that holds a vector; a column of text with another name has to be named.
FIELD = "embedding"

DTYPE = "float32"


def is_text(kind: Any) -> bool:
    """Whether an arrow type is that of text, which may hold base64."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def decode_rows(name: str, row: int, texts: Any, width: int | None = None) -> NDArray[np.float32]:
    """The numbers (m, width) of an arrow array of texts whose first row is number `row`; without a width that of it.

    >>> import pyarrow as pa
    >>> decode_rows("x", 0, pa.array(["AACAPwAAAEA=", "AAAAAAAAAMA="]))
    array([[ 1.,  2.],
           [ 0., -2.]], dtype=float32)
    """
    rows = [_numbers(name, row + i, text) for i, text in enumerate(texts.to_pylist())]
    wanted = len(rows[0]) if width is None else width
    for i, numbers in enumerate(rows):
        if len(numbers) != wanted:
            raise InputError(
                f"row {row + i} of {name} (counted from 0) has {len(numbers)} numbers, expected {wanted} as in row 0: "
                "remove that row or ask the service for vectors of one length."
            )
    return np.stack(rows)


def _numbers(name: str, row: int, text: str | None) -> NDArray[np.float32]:
    try:
        data = base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or len(data) % 4:
        shown = "null" if text is None else repr(text[:40])
        raise InputError(
            f"row {row} of {name} (counted from 0) is {shown}, expected base64 of float32 numbers: "
            "choose another column, or store each vector as a list."
        )
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False)
