"""The answer of an endpoint: vectors by the number of their text, checked."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

Vector = NDArray[np.float32]


def parse_answer(document: Any, count: int) -> dict[int, Vector]:
    """Parse the vectors (d,) of a request with so many texts, by the number of the text.

    The field `index` decides, in whatever order items come. Without it the order does, where there is an item for each
    text. Texts that are missing, or whose vectors hold NaN or infinity, are left out.

    >>> parse_answer({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}, 2)
    {1: array([0., 1.], dtype=float32), 0: array([1., 0.], dtype=float32)}
    """
    items = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise InputError("its answer has no list 'data' of embeddings; check that the URL is OpenAI-compatible")
    numbers = [item.get("index") for item in items]
    if all(number is None for number in numbers):
        if len(items) > count:
            raise InputError(f"it answered {len(items):,} embeddings for {count:,} texts; check the server")
        if len(items) < count:  # nobody can say which ones are missing
            return {}
        numbers = list(range(count))
    _check_numbers(numbers, count)
    found = {number: _parse_vector(item.get("embedding")) for number, item in zip(numbers, items, strict=True)}
    widths = sorted({len(vector) for vector in found.values()})
    if len(widths) > 1:
        raise InputError(
            f"the embeddings of one answer have {' and '.join(map(str, widths))} dimensions, expected one number of "
            "dimensions; check the server"
        )
    return {number: vector for number, vector in found.items() if np.isfinite(vector).all()}


def _check_numbers(numbers: list[Any], count: int) -> None:
    for number in numbers:
        if type(number) is not int or not 0 <= number < count:
            raise InputError(f"its answer has the index {number!r}, expected 0 to {count - 1}; check the server")
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise InputError(f"its answer has the index {twice} more than once; check the server")


def _parse_vector(given: Any) -> Vector:
    """Parse one embedding: a list of numbers, or the bytes of float32 numbers in base64; null is NaN."""
    try:
        if isinstance(given, str):
            vector = np.frombuffer(base64.b64decode(given, validate=True), "<f4").astype(np.float32)
        else:
            with np.errstate(over="ignore"):  # beyond float32: infinity, which is left out
                vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, binascii.Error):
        raise InputError("its answer has an embedding that is not a list of numbers; check the server") from None
    if vector.ndim == 2:
        raise InputError("it gives several vectors for one text; turn on pooling in the server")
    if vector.ndim != 1 or not vector.size:
        raise InputError("its answer has an embedding without numbers; check that the model is one of embeddings")
    return vector
