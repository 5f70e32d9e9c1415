"""Findings as a JSON document: what its parts hold, and the checks when it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from isotrope.errors import StoreError
from isotrope.findings.reading import Reading, Statement, Verdict

#: Version of the JSON and of the run folder. A newer one is refused, older ones are read.
FORMAT = 1

_NUMBERS = ("value", "low", "high", "null")
TEXTS = ("model", "revision", "layer", "measure", "variant", "reason", "note", "group")

#: What the fields of readings and statements hold.
_KINDS: dict[str, tuple[type, ...]] = {
    "layer": (int, str, type(None)),
    **dict.fromkeys(("measure", "variant", "text"), (str,)),
    **dict.fromkeys(("value", "low", "high", "null"), (int, float)),
    **dict.fromkeys(("n", "seed", "level"), (int,)),
    **dict.fromkeys(("reason", "note", "group"), (str, type(None))),
    "sure": (bool,),
    "layers": (tuple,),
}

#: How bad a statement may be, and the largest whole number that tables can hold.
_LEVELS, _LARGEST = range(4), 2**63 - 1

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


def parse_document(data: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the fields of findings from plain data; a newer format is refused, and so is what no version wrote."""
    version = data.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise StoreError(
            f"it has format {version!r}, this isotrope reads up to {FORMAT}; update isotrope (pip install -U isotrope)."
        )
    try:
        verdict = data["verdict"]
        statements = (Statement(**{**s, "layers": tuple(s["layers"])}) for s in verdict["statements"])
        found = {
            "readings": [Reading(**_floats(r)) for r in data["readings"]],
            "layers": list(data["layers"]),
            "layer_names": dict(data["layer_names"]),
            "verdict": Verdict(verdict["word"], tuple(statements)),
            "source": dict(data["source"]),
            "counts": dict(data["counts"]),
            "rows": {kind: [dict(row) for row in rows] for kind, rows in data.get("rows", {}).items()},
            "provenance": dict(data["provenance"]),
        }
        _check(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(f"it is damaged ({error!r}); run the scan again.") from error
    return found


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        data = json.loads(text)
        # Python reads two things that are no JSON: infinity, and half a surrogate pair, which no file can hold.
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise StoreError(f"it is not JSON ({error}); run the scan again.") from error
    if not isinstance(data, dict):
        raise StoreError("it is not a JSON object; run the scan again.")
    return data


def _check(found: Mapping[str, Any]) -> None:
    """Refuse what is of another kind than what is written."""
    verdict: Verdict = found["verdict"]
    ones: list[Reading | Statement] = [*found["readings"], *verdict.statements]
    for one in ones:
        for f in fields(one):
            value = getattr(one, f.name)
            if type(value) not in _KINDS[f.name] or (isinstance(value, int) and not -_LARGEST <= value <= _LARGEST):
                raise TypeError(f"{f.name} is {value!r}")
            if f.name == "level" and value not in _LEVELS:
                raise ValueError(f"a statement has level {value}")
    words = [verdict.word, *found["layer_names"], *found["layer_names"].values()]
    layers = [*found["layers"], *(layer for s in verdict.statements for layer in s.layers)]
    if not verdict.word:
        raise ValueError("the verdict has no word")
    if len(set(found["layers"])) < len(found["layers"]):
        raise ValueError("a layer is there twice")
    check_facts(found["source"], found["provenance"])
    named = [row for rows in found["rows"].values() for row in rows]
    expected: list[tuple[Iterable[Any], tuple[type, ...]]] = [
        (words, (str,)),
        (found["counts"].values(), (int,)),
        ((row["id"] for row in named), (int, str)),
        ((row["layer"] for row in named), (int, str)),
        (layers, (int, str)),
    ]
    for values, kinds in expected:
        for value in values:
            if type(value) not in kinds or (isinstance(value, int) and not -_LARGEST <= value <= _LARGEST):
                raise TypeError(f"{value!r} where {kinds[0].__name__} is expected")


def check_facts(source: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Refuse facts of a type that is never written.

    Raises:
        TypeError: With the fact that is wrong.

    >>> check_facts({"width": "wide"}, {})
    Traceback (most recent call last):
    TypeError: width is 'wide'
    """
    _check_kinds(source, _SOURCE)
    _check_kinds(provenance, _PROVENANCE)
    if "corpus" in source:
        _check_kinds(source["corpus"], {"name": str}, whole=True)
    if source.get("rows_are") is not None:
        _check_kinds(source, {"class": str, "modality": str}, whole=True)
        if source["modality"] not in MODALITIES:
            raise TypeError(f"modality is {source['modality']!r}")
    for file in source.get("files", ()):
        if not isinstance(file, dict):
            raise TypeError(f"a file is {file!r}")
    _check_kinds(provenance.get("settings", {}), {"seed": int})
    engine = provenance.get("engine", {})
    _check_kinds(engine, _ENGINE, whole=engine.get("name", "local") != "local")


def _check_kinds(facts: Mapping[str, Any], kinds: Mapping[str, type], *, whole: bool = False) -> None:
    """Refuse a fact of another kind. whole: also one that is missing."""
    for name, kind in kinds.items():
        value = facts.get(name)
        empty = value is None and not whole and (name not in facts or kind is str)
        if not empty and type(value) is not kind:
            raise TypeError(f"{name} is {value!r}")


def _floats(reading: Mapping[str, Any]) -> dict[str, Any]:
    return {k: math.nan if k in _NUMBERS and v is None else v for k, v in reading.items()}
