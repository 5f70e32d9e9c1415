"""What the figures of a page are drawn from, packed: spectra, maps, coordinates, sequences, repairs and token types."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.findings import Findings
from isotrope.formats.json import to_plain
from isotrope.report.headline import list_headlines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

#: What a page's typed arrays are called.
_KINDS = {"float32": "f4", "float64": "f8", "uint8": "u1", "uint16": "u2", "uint32": "u4"}

#: Types that are held in the layers that have a full map, and in the others, the most frequent first.
FULL_TYPES, THIN_TYPES = 20_000, 2_000

#: Characters of a token's name that are shown; what is longer is no word.
LONGEST = 120

_SHARES = ("mean", "deviation", "norm_share", "cosine_share")


def pack_figures(findings: Findings) -> dict[str, Any]:
    """By layer, what there is of each; empty where the run has none."""
    return {
        "spectra": _pack_spectra(findings),
        "curves": {  # the mean cumulative curve of the sequences' spectra
            label: {"x": pack(table["x"].to_numpy(np.float32)), "y": pack(table["cdf"].to_numpy(np.float32))}
            for label, table in _by_layer(findings, "sequence_cdf")
        },
        **_pack_sample(findings),
        "maps": _pack_maps(findings),
        "coordinates": {
            label: {name: pack(table[name].to_numpy(np.float32)) for name in _SHARES}
            for label, table in _by_layer(findings, "coordinates")
        },
        "sequences": {
            label: {
                "length": pack_counts(table["length"].to_numpy()),
                "uniformity": pack(table["uniformity"].to_numpy(np.float32)),
            }
            for label, table in _by_layer(findings, "sequences")
        },
        "tried": _pack_repairs(findings),
    }


def _by_layer(findings: Findings, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    table = findings.tables.get(name)
    if table is not None:
        for label, part in table.groupby("layer", sort=False):
            yield str(label), part


def _pack_spectra(findings: Findings) -> dict[str, Any]:
    """Singular values of the rows, eigenvalues of the covariance, and the mean along the singular directions.

    From all of them the page works out what a repair makes of every measure that needs no rows.
    """
    first = list_headlines()[0]
    rows = {str(r.layer): r.n for r in findings.readings if r.measure == first and r.group is None}
    along = dict(_by_layer(findings, "directions"))
    made = {}
    for label, table in _by_layer(findings, "spectra"):
        values = table["singular_value"].to_numpy(np.float64)
        one = {"n": rows.get(label, 0), "eigenvalues": pack(table["eigenvalue"].to_numpy(np.float64))}
        if label in along:
            # Of the same directions as the mean, and of as many digits.
            values = along[label]["singular_value"].to_numpy(np.float64)
            one["along"] = pack(along[label]["mean"].to_numpy(np.float64))
        missing = int(np.isfinite(table["singular_value"]).sum()) - len(values)
        values = np.append(values[np.isfinite(values)], np.zeros(max(missing, 0)))
        made[label] = one | {"singular": pack(values)}
    return made


def _pack_sample(findings: Findings) -> dict[str, Any]:
    """What is known of the rows on the maps; layers that drew the same rows, or the first of them, share it."""
    order = rank_types(findings)
    ranks = {} if order is None else {int(i): at for at, i in enumerate(order["id"])}
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
            packs["token"] = pack_counts(
                np.array([ranks.get(int(t), len(ranks)) for t in columns["token"]], dtype=np.int64)
            )
        if "position" in columns:
            packs["position"] = pack_counts(columns["position"])
            _, packs_sequence = np.unique(columns["sequence"], return_inverse=True)
            packs["sequence"] = pack_counts(packs_sequence)
        samples.append(packs)
    return {"samples": samples, "sample_of": which}


def _pack_maps(findings: Findings) -> dict[str, Any]:
    """By layer, kind of map and repair, the points as x, y, x, y, ..."""
    made: dict[str, Any] = {}
    for label, table in _by_layer(findings, "maps"):
        for (kind, repair), points in table.groupby(["map", "repair"], sort=False):
            pairs = points[["x", "y"]].to_numpy(np.float32).ravel()
            made.setdefault(label, {}).setdefault(str(kind), {})[str(repair)] = pack(pairs)
    return made


def _pack_repairs(findings: Findings) -> list[dict[str, Any]]:
    """The repairs that were tried, line by line, without NaN."""
    table = findings.tables.get("tried")
    if table is None:
        return []
    lines: list[dict[str, Any]] = to_plain(table.astype(object).where(table.notna(), None).to_dict("records"))
    return lines


def rank_types(findings: Findings) -> pd.DataFrame | None:
    """The types, the most frequent first, in the layer that has most of them; None without tokens."""
    table = findings.tables.get("tokens")
    if table is None or not len(table):
        return None
    most = table["layer"].value_counts().idxmax()
    of_layer = table[table["layer"] == most]
    order: pd.DataFrame = of_layer.sort_values(["n", "id"], ascending=[False, True], ignore_index=True)
    return order


def pack_tokens(findings: Findings) -> dict[str, Any] | None:
    """Names and counts of all types, and Q, M and V of the most frequent ones in each layer."""
    order = rank_types(findings)
    if order is None:
        return None
    ranks = {int(i): at for at, i in enumerate(order["id"])}
    maps = findings.tables.get("tried")
    full = set() if maps is None else set(maps["layer"])
    layers: dict[str, dict[str, Any]] = {}
    for label, table in findings.tables["tokens"].groupby("layer", sort=False):
        count = min(len(order), FULL_TYPES if label in full or len(findings.layers) == 1 else THIN_TYPES)
        at = np.array([ranks.get(int(i), count) for i in table["id"]], dtype=np.int64)
        keep = at < count
        columns = {"n": np.zeros(count), "Q": np.zeros(count), "M": np.zeros(count), "V": np.zeros(count)}
        for name, column in columns.items():
            column[at[keep]] = table[name].to_numpy()[keep]
        numbers = {name: pack(columns[name].astype(np.float32)) for name in ("Q", "M", "V")}
        layers[str(label)] = {"held": count, "n": pack_counts(columns["n"].astype(np.int64)), **numbers}
    return {
        "names": [shorten_name(str(name)) for name in order["token"]],
        "types": len(order),
        "layers": layers,
    }


def shorten_name(name: str) -> str:
    """A name that fits into a table.

    >>> shorten_name("a" * 500).endswith("… (500 characters)")
    True
    """
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}… ({len(name):,} characters)"


def pack(array: NDArray[Any]) -> dict[str, str]:
    """A one-dimensional array as its kind and the base64 of its little-endian bytes.

    >>> pack(np.array([1, 2], dtype=np.uint16))
    {'kind': 'u2', 'data': 'AQACAA=='}
    """
    kind = _KINDS[array.dtype.name]
    return {"kind": kind, "data": base64.b64encode(array.astype(f"<{kind}").tobytes()).decode("ascii")}


def pack_counts(array: NDArray[Any]) -> dict[str, str]:
    """Whole numbers from 0 on, in as few bytes as they need."""
    most = int(array.max()) if len(array) else 0
    kind = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32
    return pack(np.minimum(array, 2**32 - 1).astype(kind))
