"""Rows by name: the ids and texts of rows to look at, and the table of sampled rows with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.layers import Layer
from isotrope.readings.cosine_histogram import compute_background, compute_cosine_table
from isotrope.readings.row_neighbours import RowNeighbours, has_items, list_neighbour_rows
from isotrope.sources.row_names import RowName
from isotrope.sources.source import Source
from isotrope.statistics import Points, Summary

if TYPE_CHECKING:
    import pandas as pd

#: Rows by kind, as plain data.
RowLists = dict[str, list[dict[str, Any]]]

#: The name of a row that has none.
_UNKNOWN = RowName()


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows to look at by kind, how many there are of each kind, and the tables `rows` and `cosines`."""

    rows: RowLists
    counts: dict[str, int]
    tables: dict[str, pd.DataFrame]


def name_rows(summary: Summary, layer: Layer, source: Source, unusual: RowLists, seed: int) -> NamedRows:
    """Find the rows to look at among the sampled ones, and give all rows to look at their ids and texts.

    Args:
        summary: The statistics of all rows of the last layer.
        layer: The last layer.
        source: Knows the names of the rows.
        unusual: Zero, non-finite and extreme rows.
        seed: Selects random pairs of rows.
    """
    rows, tables = dict(unusual), {}
    counts: dict[str, int] = {}
    found = None
    if summary.sample is not None and has_items(summary.sample):
        points = Points.of(summary.sample.to_usable_rows())
        found = RowNeighbours.of(points)
        more, counts = list_neighbour_rows(found, summary, layer)
        rows |= more
        background = compute_background(points.unit.rows, seed)
        tables["cosines"] = _label(layer, compute_cosine_table(background, found.cosine))
    names = source.find_names(_list_numbers(rows, found))
    if found is not None:
        tables["rows"] = _label(layer, _make_columns(found, names))
    return NamedRows({kind: [name_row(row, names) for row in listed] for kind, listed in rows.items()}, counts, tables)


def name_row(row: Mapping[str, Any], names: Mapping[int, RowName]) -> dict[str, Any]:
    """Give a row its id and text: `row` is its number, and `id` too where ids are not known.

    >>> name_row({"id": 7, "layer": 0}, {7: RowName("doc-7", "A text.")})
    {'id': 'doc-7', 'row': 7, 'text': 'A text.', 'layer': 0}
    """
    number = row["id"]
    name = names.get(number, _UNKNOWN)
    made = {"id": number if name.id is None else name.id, "row": number}
    if name.text is not None:
        made["text"] = name.text
    rest = {key: value for key, value in row.items() if key != "id"}
    if "nearest" in rest and (other := names.get(rest["nearest"], _UNKNOWN)).id is not None:
        rest["nearest"] = other.id
    return made | rest


def _list_numbers(rows: RowLists, found: RowNeighbours | None) -> Any:
    """The numbers of all rows whose names are looked up."""
    listed = np.array([row["id"] for part in rows.values() for row in part], np.uint64)
    return listed if found is None else np.concatenate([listed, found.row])


def _make_columns(found: RowNeighbours, names: Mapping[int, RowName]) -> dict[str, Any]:
    """The columns of the table of rows; a row that is in no group of duplicates has none."""
    columns = found.columns()
    own = [names.get(row, _UNKNOWN) for row in found.row.tolist()]
    group = columns["duplicate_group"]
    made: dict[str, Any] = {"row": columns["row"].astype(np.int64)}
    made["id"] = _choose_ids(found.row.tolist(), names)
    made["text"] = [name.text for name in own]
    return made | {
        "occurrences": columns["occurrences"],
        "nearest": _choose_ids(found.nearest.tolist(), names),
        "cosine": columns["cosine"],
        "duplicate_group": np.where(group < 0, np.nan, group),
        "outlier_score": columns["outlier_score"],
        "norm": columns["norm"],
    }


def _choose_ids(numbers: Sequence[int], names: Mapping[int, RowName]) -> list[str]:
    """The ids of rows as text, their numbers where there are no ids."""
    found = (names.get(number, _UNKNOWN).id for number in numbers)
    return [str(number) if known is None else known for number, known in zip(numbers, found, strict=True)]


def _label(layer: Layer, columns: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    typed = {"text": "string", "duplicate_group": "Int64"}
    frame = pd.DataFrame({"layer": str(layer), **columns})
    labelled: pd.DataFrame = frame.astype({name: kind for name, kind in typed.items() if name in frame})
    return labelled
