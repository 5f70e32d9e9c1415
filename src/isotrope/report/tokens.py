"""The token types of a run as a page holds them: all numbers of the most frequent ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.findings import Findings
from isotrope.report.packing import counts, packed

if TYPE_CHECKING:
    import pandas as pd

#: Types that are held in the layers that have a full map, and in the others, the most frequent first.
FULL, THIN = 20_000, 2_000

#: Characters of a token's name that are shown; what is longer is no word.
LONGEST = 120


def ranked(findings: Findings) -> pd.DataFrame | None:
    """The types, the most frequent first, in the layer that has most of them; None without tokens."""
    table = findings.tables.get("tokens")
    if table is None or not len(table):
        return None
    most = table["layer"].value_counts().idxmax()
    of_layer = table[table["layer"] == most]
    order: pd.DataFrame = of_layer.sort_values(["n", "id"], ascending=[False, True], ignore_index=True)
    return order


def tokens(findings: Findings) -> dict[str, Any] | None:
    """Names and counts of all types, and Q, M and V of the most frequent ones in each layer."""
    order = ranked(findings)
    if order is None:
        return None
    place = {int(i): at for at, i in enumerate(order["id"])}
    maps = findings.tables.get("tried")
    full = set() if maps is None else set(maps["layer"])
    layers: dict[str, dict[str, Any]] = {}
    for label, table in findings.tables["tokens"].groupby("layer", sort=False):
        held = min(len(order), FULL if label in full or len(findings.layers) == 1 else THIN)
        at = np.array([place.get(int(i), held) for i in table["id"]], dtype=np.int64)
        keep = at < held
        columns = {"n": np.zeros(held), "Q": np.zeros(held), "M": np.zeros(held), "V": np.zeros(held)}
        for name, column in columns.items():
            column[at[keep]] = table[name].to_numpy()[keep]
        numbers = {name: packed(columns[name].astype(np.float32)) for name in ("Q", "M", "V")}
        layers[str(label)] = {"held": held, "n": counts(columns["n"].astype(np.int64)), **numbers}
    return {
        "names": [shortened(str(name)) for name in order["token"]],
        "types": len(order),
        "layers": layers,
    }


def shortened(name: str) -> str:
    """A name that fits into a table.

    >>> shortened("a" * 500).endswith("… (500 characters)")
    True
    """
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}… ({len(name):,} characters)"
