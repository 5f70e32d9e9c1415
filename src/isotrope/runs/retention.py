"""What a finished run keeps on disk: tables, and statistics in one of three sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.sources.batch import shorten_label
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Moments, Summary
from isotrope.statistics.token_tables import TokenTables

if TYPE_CHECKING:
    import pandas as pd

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]

#: none: findings, tables and the report only. summary: what later commands read, compact. all: exact, can be merged.
KEEP = ("none", "summary", "all")

#: A compact run keeps at most so many sampled rows of a layer, which is more than `repair show` takes, and so many
#: bytes of the rows of all layers, but never fewer rows than a report draws.
_MOST_ROWS, _MOST_BYTES, _FEWEST_ROWS = 6_000, 72_000_000, 1_500

#: Bytes of a number of a sampled row on disk, and of what is known of the row.
_NUMBER_BYTES, _KNOWN_BYTES = 2, 26


#: One in so many points of the cumulative curve is kept.
_THIN = 5


def check_keep(keep: str) -> None:
    """Refuse a word that says nothing.

    >>> check_keep("everything")
    Traceback (most recent call last):
    isotrope.errors.InputError: got keep 'everything', expected none, summary or all.
    """
    if keep not in KEEP:
        raise InputError(f"got keep {keep!r}, expected none, summary or all.")


def count_kept_rows(sample: int, layers: int, d: int) -> int:
    """How many sampled rows of each layer a compact run keeps.

    >>> count_kept_rows(20_000, layers=7, d=384), count_kept_rows(20_000, layers=31, d=576)
    (6000, 1971)
    """
    fitting = _MOST_BYTES // (layers * (_NUMBER_BYTES * d + _KNOWN_BYTES))
    return min(sample, _MOST_ROWS, max(fitting, _FEWEST_ROWS))


def estimate_bytes(d: int, layers: int, *, types: int, sample: int, keep: str, groups: int = 1) -> int:
    """About how many bytes the statistics of a finished run take on disk."""
    if keep == "none":
        return 0
    if keep == "all":
        return layers * groups * (8 * d * d + 12 * d * types + 4 * d * sample)
    rows = count_kept_rows(sample, layers, d)
    # About a third of the types of a text are frequent enough that their means are kept.
    return layers * (
        4 * d * (d + 1) + (56 + _NUMBER_BYTES * d // 3) * types + rows * (_NUMBER_BYTES * d + _KNOWN_BYTES)
    )


class StatisticFiles(NamedTuple):
    """The statistics that a finished run keeps.

    Args:
        arrays: The arrays of each file, by its name.
        contents: The group and the layer that each file is of.
        keep: How much of the statistics this is, "summary" or "all".
    """

    arrays: Mapping[str, Arrays]
    contents: Mapping[str, tuple[str | None, Layer]]
    keep: str = "all"


def select_statistics(collection: Collection, keep: str) -> StatisticFiles:
    """Select the statistics that a finished run keeps.

    With "none" the report still needs them: they are compact, and `Run.drop_statistics` removes them after it.
    """
    if keep == "all":
        return StatisticFiles(exact_arrays(collection), name_files(collection), keep)
    layers = {f"layer_{layer}": (None, layer) for _, layer in collection.summaries}
    return StatisticFiles(compact_arrays(collection), layers, "summary")


def name_files(collection: Collection) -> dict[str, tuple[str | None, Layer]]:
    """Name a file for each summary, and say of which group and layer it is."""
    groups = collection.groups()
    return {
        f"layer_{layer}" if group is None else f"group_{groups.index(group)}_layer_{layer}": (group, layer)
        for group, layer in collection.summaries
    }


def exact_arrays(collection: Collection) -> dict[str, dict[str, NDArray[Any]]]:
    """The whole state of each summary, by file name."""
    return {name: collection.summaries[key].arrays() for name, key in name_files(collection).items()}


def compact_arrays(collection: Collection) -> dict[str, dict[str, NDArray[Any]]]:
    """The statistics of each layer, all groups together, as few arrays as later commands need, by file name."""
    layers = list(dict.fromkeys(layer for _, layer in collection.summaries))
    made = {}
    for layer in layers:
        summary = collection.layer(layer)
        rows = count_kept_rows(collection.wanted.sample, len(layers), summary.moments.d)
        made[f"layer_{layer}"] = _compact(summary, rows)
    return made


def _compact(summary: Summary, rows: int) -> dict[str, NDArray[Any]]:
    """The arrays of one layer: exact moments and tables, and so many sampled rows in half precision."""
    compact = ("moments", "tokens", "sample", "duplicates")
    parts = {name: part.arrays() for name, part in summary.parts().items() if name not in compact}
    parts["moments"] = summary.moments.compact_arrays()
    if summary.duplicates is not None:
        parts["duplicates"] = summary.duplicates.compact_arrays()
    if summary.tokens is not None:
        tokens = summary.tokens
        parts["tokens"] = (tokens if isinstance(tokens, TokenTables) else TokenTables.of(tokens)).arrays()
    if summary.sample is not None:
        parts["sample"] = summary.sample.compact_arrays(rows, summary.moments.mean)
    return {f"{name}.{key}": array for name, part in parts.items() for key, array in part.items()}


def compute_tables(collection: Collection, source: Source, layers: Sequence[Layer]) -> dict[str, pd.DataFrame]:
    """Compute tidy tables by name; layers are text, because some have names."""
    import pandas as pd

    from isotrope.measures.sequence_spectrum import GRID, mean_cdf

    made: dict[str, list[pd.DataFrame]] = {"spectra": [], "tokens": [], "sequence_cdf": []}
    for layer in layers:
        summary = collection.layer(layer)
        made["spectra"].append(label_layer(layer, _spectra(summary.moments)))
        if summary.tokens is not None and len(summary.tokens):
            t = summary.tokens.table
            names = source.token_names(t.types) or [str(i) for i in t.types]
            names = [shorten_label(name) for name in names]
            columns = {"token": names, "id": t.types, "n": t.n, "Q": t.q, "M": t.m, "V": t.v}
            made["tokens"].append(label_layer(layer, columns))
        if summary.sequences is not None and summary.sample is not None:
            spectra = summary.sample.spectra()
            if len(spectra):
                made["sequence_cdf"].append(label_layer(layer, {"x": GRID[::_THIN], "cdf": mean_cdf(spectra)[::_THIN]}))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in made.items() if parts}


def _spectra(moments: Moments) -> dict[str, Any]:
    """Singular values of the uncentred rows and eigenvalues of the covariance, side by side."""
    covariance = moments.eigenvalues / max(moments.n - 1, 1)
    singular = np.full(moments.d, np.nan)
    singular[: len(moments.singular_values)] = moments.singular_values
    return {"index": np.arange(1, moments.d + 1), "singular_value": singular, "eigenvalue": covariance}


def label_layer(layer: Layer, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A table of these columns with the layer before them."""
    import pandas as pd

    frame: pd.DataFrame = pd.DataFrame({"layer": str(layer), **columns})
    return frame
