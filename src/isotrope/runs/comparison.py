"""What changed between runs, by how much, and whether beyond its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.runs.alignment import Alignment, Layers
from isotrope.runs.alignment import align as align_layers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one layer in two runs.

    Args:
        layer: of the first run, None for a reading across layers.
        beyond: True where the intervals do not touch, None where there is none.
        other_layer: the layer of the second run that it is compared with.
    """

    layer: int | str | None
    measure: str
    group: str | None
    before: float
    after: float
    beyond: bool | None
    note: str | None = None
    other_layer: int | str | None = None

    @property
    def difference(self) -> float:
        return self.after - self.before


class Comparison(list[Change]):
    """The changes from one run to another, and how their layers were paired."""

    def __init__(self, changes: Iterable[Change], alignment: Alignment) -> None:
        super().__init__(changes)
        self.alignment = alignment


def compare(runs: Sequence[Findings], align: str | None = None) -> list[Comparison]:
    """The changes from the first run to each of the others, for the readings that they share.

    Args:
        runs: two or more.
        align: "depth" pairs layers of the same relative depth, "name" those of the same name or number; by default
            by name where the runs have the same layers, and by depth otherwise.
    """
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs.")
    return [_pair(runs[0], other, align) for other in runs[1:]]


def _pair(first: Findings, second: Findings, by: str | None) -> Comparison:
    alignment = align_layers(_layers(first), _layers(second), by)
    partner: dict[int | str | None, int | str | None] = {None: None}
    partner.update(alignment.pairs)
    there = {_key(r, r.layer): r for r in second.readings}
    found = [
        (r, there[key]) for r in first.readings if r.layer in partner and (key := _key(r, partner[r.layer])) in there
    ]
    if not found:
        raise InputError("the runs share no reading: they have no measure of the same layer in common.")
    return Comparison([_change(a, b) for a, b in found], alignment)


def _layers(run: Findings) -> Layers:
    states = run.source.get("states")
    names = {layer: run.layer_names.get(str(layer), str(layer)) for layer in run.layers}
    return Layers(names, states if isinstance(states, int) else None)


def _key(r: Reading, layer: int | str | None) -> tuple[int | str | None, str, str | None, str]:
    return (layer, r.measure, r.group, r.variant)


def _change(a: Reading, b: Reading) -> Change:
    ends = (a.low, a.high, b.low, b.high)
    beyond = None if any(math.isnan(e) for e in ends) else a.high < b.low or b.high < a.low
    note = f"n differs: {a.n:,} and {b.n:,}" if a.n != b.n else None
    return Change(a.layer, a.measure, a.group, a.value, b.value, beyond, note, b.layer)


def to_frame(changes: Sequence[Change]) -> pd.DataFrame:
    """The changes as a tidy table."""
    import pandas as pd

    rows = [
        {
            "layer": None if c.layer is None else str(c.layer),
            "other_layer": None if c.other_layer is None else str(c.other_layer),
            "measure": c.measure,
            "group": c.group,
            "before": c.before,
            "after": c.after,
            "difference": c.difference,
            "beyond": c.beyond,
            "note": c.note,
        }
        for c in changes
    ]
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame
