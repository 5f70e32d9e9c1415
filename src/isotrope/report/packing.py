"""Numbers as text that a page can hold: small ones as they are, long arrays as base64 of their bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What a page's typed arrays are called.
_KINDS = {"float32": "f4", "float64": "f8", "uint8": "u1", "uint16": "u2", "uint32": "u4"}

#: Characters that could end a script element, or a line of one, inside a string.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def packed(array: NDArray[Any]) -> dict[str, str]:
    """A one-dimensional array as its kind and the base64 of its little-endian bytes.

    >>> packed(np.array([1, 2], dtype=np.uint16))
    {'kind': 'u2', 'data': 'AQACAA=='}
    """
    kind = _KINDS[array.dtype.name]
    return {"kind": kind, "data": base64.b64encode(array.astype(f"<{kind}").tobytes()).decode("ascii")}


def counts(array: NDArray[Any]) -> dict[str, str]:
    """Whole numbers from 0 on, in as few bytes as they need."""
    most = int(array.max()) if len(array) else 0
    kind = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32
    return packed(np.minimum(array, 2**32 - 1).astype(kind))


def script_json(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element.

    >>> script_json({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
