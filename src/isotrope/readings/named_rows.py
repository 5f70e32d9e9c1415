"""Rows by name: the ids and texts of rows to look at, and the table of sampled rows with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.readings.cosine_histogram import compute_background, compute_cosine_table
from isotrope.readings.row_neighbours import RowNeighbours, list_neighbour_rows
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


class ComparedRows(NamedTuple):
    """Sampled rows of one layer that were compared with each other, and a table of their cosines."""

    layer: Layer
    found: RowNeighbours
    cosines: Mapping[str, Any]


def has_items(summary: Summary) -> bool:
    """Whether each sampled row is an item of its own, such as a vector or a whole text."""
    return summary.sample is not None and summary.sample.rows.position is None


def compare_rows(layer: Layer, points: Points, seed: int) -> ComparedRows | None:
    """Compare sampled rows with each other by cosine; None where they all point in one direction."""
    if points.n < 2 or points.unit.distinct.n < 2:
        return None
    found = RowNeighbours.of(points)
    return ComparedRows(layer, found, compute_cosine_table(compute_background(points.unit.rows, seed), found.cosine))


def name_rows(compared: ComparedRows | None, source: Source, unusual: RowLists) -> NamedRows:
    """Give all rows to look at their ids and texts.

    Args:
        compared: Rows of the last layer that were compared with each other, None where none were.
        source: Knows the names of the rows.
        unusual: Rows that are zero, not finite, extreme or equal.
    """
    rows, tables = dict(unusual), {}
    counts: dict[str, int] = {}
    if compared is not None:
        more, counts = list_neighbour_rows(compared.found, unusual.get("duplicates", []), compared.layer)
        rows |= more
    names = source.find_names(_list_numbers(rows, compared))
    if compared is not None:
        tables["rows"] = _label(compared.layer, _make_columns(compared.found, names))
        tables["cosines"] = _label(compared.layer, compared.cosines)
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


def _list_numbers(rows: RowLists, compared: ComparedRows | None) -> NDArray[np.uint64]:
    """The numbers of all rows whose names are looked up."""
    listed = np.array([row["id"] for part in rows.values() for row in part], np.uint64)
    return listed if compared is None else np.concatenate([listed, compared.found.row])


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
