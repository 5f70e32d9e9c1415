"""Findings as the plain data that is recorded, and how two of them differ."""

from __future__ import annotations

import math
from typing import Any

import isotrope

NUMBERS = ("value", "low", "high", "null")
NAMES = ("layer", "measure", "group", "n", "variant", "reason")


def to_plain(findings: isotrope.Findings) -> dict[str, Any]:
    """The verdict, the counts and the readings of findings."""
    data = findings.to_dict()
    return {
        "verdict": data["verdict"]["word"],
        "statements": str(findings.verdict).splitlines(),
        "counts": data["counts"],
        "readings": [{name: reading[name] for name in (*NAMES, *NUMBERS)} for reading in data["readings"]],
    }


def find_differences(expected: dict[str, Any], got: dict[str, Any], tolerance: float) -> list[str]:
    """List in words where findings differ; numbers may differ by the tolerance times the largest number of a reading.

    A value and its interval are of one scale. Near zero, where a relative difference means nothing, the ends of the
    interval say how small a difference is small.
    """
    differences = [
        f"{key}: expected {expected[key]!r}, got {got[key]!r}"
        for key in ("verdict", "statements", "counts")
        if expected[key] != got[key]
    ]
    named = [[tuple(reading[name] for name in NAMES) for reading in side["readings"]] for side in (expected, got)]
    if named[0] != named[1]:
        differences += [f"expected {one}" for one in named[0] if one not in named[1]]
        differences += [f"not expected {one}" for one in named[1] if one not in named[0]]
        return differences or ["the readings have another order"]
    for one, other in zip(expected["readings"], got["readings"], strict=True):
        numbers = [one[name] for name in NUMBERS if one[name] is not None]
        allowed = tolerance * max(map(abs, numbers), default=0.0)
        for name in NUMBERS:
            if not _is_close(one[name], other[name], allowed):
                where = f"layer {one['layer']}, {one['measure']}, {name}"
                differences.append(f"{where}: expected {one[name]!r}, got {other[name]!r}")
    return differences


def _is_close(one: float | None, other: float | None, allowed: float) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=0.0, abs_tol=allowed)
