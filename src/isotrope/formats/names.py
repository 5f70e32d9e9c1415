"""Layers and rows of a run in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

#: What a row with no position is called, by what a model reads.
_UNITS = {"text": "text", "image": "image", "audio": "sound"}


class Scanned(Protocol):
    """What the names of layers and rows depend on: findings have it."""

    source: dict[str, Any]
    layers: list[int | str]
    layer_names: dict[str, str]


def is_vectors(findings: Scanned) -> bool:
    """Whether vectors were scanned, which have no layers to speak of."""
    return findings.source.get("kind") == "vectors"


def describe_place(findings: Scanned, layer: int | str) -> str:
    """Where something is, in words: "the vectors", "the last layer", "layer 6" where there is no other."""
    if is_vectors(findings):
        return "the vectors"
    return "the last layer" if len(findings.layers) > 1 else f"layer {layer}"


def name_layer(findings: Scanned, layer: int | str | None) -> str:
    """What a layer is called in a table: its name, "vectors" where vectors were scanned, nothing across layers."""
    if layer is None:
        return ""
    return "vectors" if is_vectors(findings) else findings.layer_names.get(str(layer), str(layer))


def name_layers(layers: Sequence[int | str], order: Sequence[int | str]) -> str:
    """Layers in words, three or more in a row as a stretch.

    >>> name_layers([0, 2, 3, 4, 7], range(9))
    'layers 0, 2 to 4 and 7'
    """
    stretches: list[list[int | str]] = []
    for layer in layers:
        if stretches and order.index(layer) == order.index(stretches[-1][-1]) + 1:
            stretches[-1].append(layer)
        else:
            stretches.append([layer])
    words = [[f"{part[0]} to {part[-1]}"] if len(part) > 2 else list(map(str, part)) for part in stretches]
    *most, last = chain(*words)
    many = "s" if len(layers) > 1 else ""
    return f"layer{many} {', '.join(most)} and {last}" if most else f"layer{many} {last}"


def name_row(findings: Scanned, row: Mapping[str, Any]) -> str:
    """A row of `Findings.rows` in words: "row 3000", "text 17", "token 'the' at position 3 of text 17".

    >>> from isotrope.findings import Findings
    >>> name_row(Findings([], source={"kind": "vectors"}), {"id": 3000, "layer": 0})
    'row 3000'
    """
    if is_vectors(findings):
        return f"row {row['id']}"
    unit = f"{_UNITS.get(str(findings.source.get('modality')), 'sequence')} {row['id']}"
    if row.get("position") is None:
        return unit
    token = "position" if row.get("token") is None else f"token {row['token']!r} at position"
    return f"{token} {row['position']} of {unit}"


def name_rows(findings: Scanned, rows: Sequence[Mapping[str, Any]], count: int, most: int = 3) -> str:
    """Some rows of `count` in words, each once: "row 5, row 9 and 3 more"."""
    names = list(dict.fromkeys(name_row(findings, row) for row in rows))[:most]
    more = count - len(names)
    parts = [*names, f"{more:,} more"] if more > 0 else names
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
