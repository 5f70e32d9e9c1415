"""What changed between runs, by how much, and whether beyond its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one layer in two runs. beyond: True where the intervals do not touch, None where there is none."""

    layer: int | str | None
    measure: str
    group: str | None
    before: float
    after: float
    beyond: bool | None
    note: str | None = None

    @property
    def difference(self) -> float:
        return self.after - self.before


def compare(runs: Sequence[Findings]) -> list[list[Change]]:
    """The changes from the first run to each of the others, for the readings they share; layers match by label."""
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs.")
    return [_pair(runs[0], other) for other in runs[1:]]


def _pair(first: Findings, second: Findings) -> list[Change]:
    there = {_key(r): r for r in second.readings}
    changes = [_change(r, there[_key(r)]) for r in first.readings if _key(r) in there]
    if not changes:
        raise InputError("the runs share no reading: they have no measure of the same layer in common.")
    return changes


def _key(r: Reading) -> tuple[int | str | None, str, str | None, str]:
    return (r.layer, r.measure, r.group, r.variant)


def _change(a: Reading, b: Reading) -> Change:
    ends = (a.low, a.high, b.low, b.high)
    beyond = None if any(math.isnan(e) for e in ends) else a.high < b.low or b.high < a.low
    note = f"n differs: {a.n:,} and {b.n:,}" if a.n != b.n else None
    return Change(a.layer, a.measure, a.group, a.value, b.value, beyond, note)


def to_frame(changes: Sequence[Change]) -> pd.DataFrame:
    """The changes as a tidy table."""
    import pandas as pd

    rows = [
        {
            "layer": None if c.layer is None else str(c.layer),
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
