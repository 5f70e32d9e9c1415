"""JSON documents: what is undefined is null, everywhere by this one rule."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def to_plain(value: Any) -> Any:
    """Convert data to what JSON knows: NaN and infinities become None, numpy's numbers Python's, tuples
    lists, and dataclasses dictionaries.

    >>> to_plain({"a": math.nan, "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_json(data: Any) -> str:
    """Format data as a JSON document.

    >>> format_json({"value": math.inf})
    '{\\n "value": null\\n}'
    """
    return json.dumps(to_plain(data), indent=1, ensure_ascii=False, allow_nan=False)
