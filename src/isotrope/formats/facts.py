"""What findings may say of their source and provenance: the facts that commands read, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Facts that are read again, and what they hold where they are given; others are only shown.
_SOURCE: dict[str, type] = {
    **dict.fromkeys(("model", "revision", "class", "modality", "rows_are", "layers_are", "pooling"), str),
    **dict.fromkeys(("files", "layers"), list),
    **dict.fromkeys(("corpus", "left_out"), dict),
    "width": int,
}
_PROVENANCE: dict[str, type] = {"started": str, "settings": dict, "engine": dict}
_ENGINE: dict[str, type] = {"name": str, "workers": int, "retried_shards": int, "skipped_shards": dict}

#: What models read.
MODALITIES = ("text", "image", "audio")


def check_facts(source: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Refuse facts of another kind than those that are written.

    Raises:
        TypeError: With the fact that is wrong.

    >>> check_facts({"width": "wide"}, {})
    Traceback (most recent call last):
    TypeError: width is 'wide'
    """
    _check(source, _SOURCE)
    _check(provenance, _PROVENANCE)
    if "corpus" in source:
        _check(source["corpus"], {"name": str}, whole=True)
    if source.get("rows_are") is not None:
        _check(source, {"class": str, "modality": str}, whole=True)
        if source["modality"] not in MODALITIES:
            raise TypeError(f"modality is {source['modality']!r}")
    for file in source.get("files", ()):
        if not isinstance(file, dict):
            raise TypeError(f"a file is {file!r}")
    _check(provenance.get("settings", {}), {"seed": int})
    engine = provenance.get("engine", {})
    _check(engine, _ENGINE, whole=engine.get("name", "local") != "local")


def _check(facts: Mapping[str, Any], kinds: Mapping[str, type], *, whole: bool = False) -> None:
    """Refuse a fact of another kind. whole: also one that is missing."""
    for name, kind in kinds.items():
        value = facts.get(name)
        empty = value is None and not whole and (name not in facts or kind is str)
        if not empty and type(value) is not kind:
            raise TypeError(f"{name} is {value!r}")
