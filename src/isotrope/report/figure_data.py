"""What the figures of a page are drawn from, packed: spectra, maps, coordinates, sequences and tried repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.findings import Findings
from isotrope.formats.json import to_plain
from isotrope.report.packing import counts, packed
from isotrope.report.tokens import ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


def drawn(findings: Findings) -> dict[str, Any]:
    """By layer, what there is of each; empty where the run has none."""
    return {
        "spectra": _spectra(findings),
        "curves": _curves(findings),
        **_sample(findings),
        "maps": _maps(findings),
        "coordinates": {
            label: {name: packed(table[name].to_numpy(np.float32)) for name in _SHARES}
            for label, table in _by_layer(findings, "coordinates")
        },
        "sequences": {
            label: {
                "length": counts(table["length"].to_numpy()),
                "uniformity": packed(table["uniformity"].to_numpy(np.float32)),
            }
            for label, table in _by_layer(findings, "sequences")
        },
        "tried": _tried(findings),
    }


_SHARES = ("mean", "deviation", "norm_share", "cosine_share")


def _by_layer(findings: Findings, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    table = findings.tables.get(name)
    if table is not None:
        for label, part in table.groupby("layer", sort=False):
            yield str(label), part


def _spectra(findings: Findings) -> dict[str, Any]:
    """Singular values of the rows, eigenvalues of the covariance, and the mean along the singular directions.

    From all of them the page works out what a repair makes of every measure that needs no rows.
    """
    rows = {str(r.layer): r.n for r in findings.readings if r.measure == "mean_cosine" and r.group is None}
    along = dict(_by_layer(findings, "directions"))
    made = {}
    for label, table in _by_layer(findings, "spectra"):
        values = table["singular_value"].to_numpy(np.float64)
        one = {"n": rows.get(label, 0), "eigenvalues": packed(table["eigenvalue"].to_numpy(np.float64))}
        if label in along:
            # Of the same directions as the mean, and of as many digits.
            values = along[label]["singular_value"].to_numpy(np.float64)
            one["along"] = packed(along[label]["mean"].to_numpy(np.float64))
        missing = int(np.isfinite(table["singular_value"]).sum()) - len(values)
        values = np.append(values[np.isfinite(values)], np.zeros(max(missing, 0)))
        made[label] = one | {"singular": packed(values)}
    return made


def _curves(findings: Findings) -> dict[str, Any]:
    """The mean cumulative curve of the sequences' spectra."""
    return {
        label: {"x": packed(table["x"].to_numpy(np.float32)), "y": packed(table["cdf"].to_numpy(np.float32))}
        for label, table in _by_layer(findings, "sequence_cdf")
    }


def _sample(findings: Findings) -> dict[str, Any]:
    """What is known of the rows on the maps; layers that drew the same rows, or the first of them, share it."""
    order = ranked(findings)
    place = {} if order is None else {int(i): at for at, i in enumerate(order["id"])}
    kept: list[dict[str, Any]] = []
    which: dict[str, int] = {}
    tables = sorted(_by_layer(findings, "sample"), key=lambda item: -len(item[1]))
    for label, table in tables:
        # Where other layers' rows have token types and these have none, the column is there and empty.
        there = [name for name in ("sequence", "token", "position") if name in table and table[name].notna().all()]
        columns = {name: table[name].to_numpy() for name in there}
        for i, known in enumerate(kept):
            if known.keys() == columns.keys() and all(
                np.array_equal(known[name][: len(table)], column) for name, column in columns.items()
            ):
                which[label] = i
                break
        else:
            which[label] = len(kept)
            kept.append(columns)
    samples = []
    for columns in kept:
        packs = {}
        if "token" in columns:
            packs["token"] = counts(np.array([place.get(int(t), len(place)) for t in columns["token"]], dtype=np.int64))
        if "position" in columns:
            packs["position"] = counts(columns["position"])
            _, packs_sequence = np.unique(columns["sequence"], return_inverse=True)
            packs["sequence"] = counts(packs_sequence)
        samples.append(packs)
    return {"samples": samples, "sample_of": which}


def _maps(findings: Findings) -> dict[str, Any]:
    """By layer, kind of map and repair, the points as x, y, x, y, ..."""
    made: dict[str, Any] = {}
    for label, table in _by_layer(findings, "maps"):
        for (kind, repair), points in table.groupby(["map", "repair"], sort=False):
            pairs = points[["x", "y"]].to_numpy(np.float32).ravel()
            made.setdefault(label, {}).setdefault(str(kind), {})[str(repair)] = packed(pairs)
    return made


def _tried(findings: Findings) -> list[dict[str, Any]]:
    """The repairs that were tried, line by line, without NaN."""
    table = findings.tables.get("tried")
    if table is None:
        return []
    lines: list[dict[str, Any]] = to_plain(table.astype(object).where(table.notna(), None).to_dict("records"))
    return lines
