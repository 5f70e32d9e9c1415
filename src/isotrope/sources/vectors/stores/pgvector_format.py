"""pgvector's vectors as PostgreSQL sends and takes them: two numbers of 16 bits, then floats, all big-endian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

#: The types of columns that are read, and what they hold.
DTYPES: dict[str, np.dtype[Any]] = {"vector": np.dtype(np.float32), "halfvec": np.dtype(np.float16)}

#: What COPY begins and ends with in its binary form.
COPY_HEAD, COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"

#: Where a row lies in its table (ctid), and the transaction that wrote it (xmin): together one version of one row.
KEYS = np.dtype([("place", "V6"), ("version", "V4")])


def vectors_of(sent: Sequence[bytes], kind: str, width: int, name: str, row: int) -> NDArray[Any]:
    """Vectors (m, width) from what the server sent; the first is of row number `row`.

    >>> one = b"\\x00\\x02\\x00\\x00" + np.array([1.5, -2.0], ">f4").tobytes()
    >>> vectors_of([one, one], "vector", 2, "x", 0).tolist()
    [[1.5, -2.0], [1.5, -2.0]]
    """
    form = np.dtype([("head", "V4"), ("values", DTYPES[kind].newbyteorder(">"), (width,))])
    for i, one in enumerate(sent):
        if len(one) != form.itemsize:
            raise InputError(
                f"row {row + i} of {name} (counted from 0) has {int.from_bytes(one[:2], 'big')} numbers, expected "
                f"{width} as in the others; remove it, or make all equally long."
            )
    values: NDArray[Any] = np.frombuffer(b"".join(sent), form)["values"].astype(DTYPES[kind])
    return values


def keys_of(rows: Sequence[Sequence[Any]]) -> NDArray[Any]:
    """Places and versions of rows that came as (vector, ctid, xmin)."""
    return np.frombuffer(b"".join(place + version for _, place, version in rows), KEYS)


def format_rows(keys: NDArray[Any], vectors: NDArray[Any]) -> bytes:
    """Rows (place, version, vector) as COPY takes them: a count of fields, then each behind its length."""
    rows, width = vectors.shape
    form = np.dtype(
        [
            ("fields", ">i2"), ("place_length", ">i4"), ("place", "V6"), ("version_length", ">i4"), ("version", "V4"),
            ("length", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("values", ">f4", (width,)),
        ]
    )  # fmt: skip
    out = np.zeros(rows, form)
    out["fields"], out["place_length"], out["version_length"] = 3, 6, 4
    out["place"], out["version"] = keys["place"], keys["version"]
    out["length"], out["width"], out["values"] = 4 + 4 * width, width, vectors
    return out.tobytes()
