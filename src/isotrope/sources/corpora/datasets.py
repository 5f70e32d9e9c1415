"""Rows of Hugging Face datasets: on the hub, in a local folder of data files, or saved to disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, MissingExtra, describe_error
from isotrope.registry import did_you_mean
from isotrope.sources.corpora.columns import Row, head_columns, is_string
from isotrope.sources.models.location import hub_answers

STRINGS = ("string", "large_string")


def load_split(source: str | Path, split: str | None, *, saved: bool = False, hint: str = "") -> tuple[Any, str]:
    """One split of a dataset and its name: the split asked for, else "train", else the only one saved.

    Args:
        source: A hub id ("org/name" or "org/name:config") or a local folder.
        split: The split asked for.
        saved: Whether the folder was written by `save_to_disk`.
        hint: What to add to the sentence that the id was not found.
    """
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "evaluate", "reading a Hugging Face dataset") from None

    name, _, config = (str(source), "", "") if isinstance(source, Path) else source.partition(":")
    unreachable = f"{str(source)!r} is neither a file here{hint} nor reachable on the Hugging Face hub"
    advice = "check the name and the network."
    if isinstance(source, str) and not hub_answers():
        raise InputError(f"{unreachable} (no network); {advice}")
    try:
        if saved:
            data = datasets.load_from_disk(name)
        else:
            # The whole path: a folder named "json" would be taken for the loader of that name.
            place = str(source.resolve()) if isinstance(source, Path) else name
            data = datasets.load_dataset(place, config or None, streaming=True)  # nosec B615  # data, no code
    except Exception as error:  # whatever the library, the network and the files raise
        reason = describe_error(error)
        if isinstance(source, str) and isinstance(error, OSError):
            raise InputError(f"{unreachable} ({reason}); {advice}") from error
        how = "; a config is named as in 'org/name:config'" if isinstance(source, str) else ""
        raise InputError(f"cannot read {str(source)!r} as a Hugging Face dataset ({reason}){how}.") from error

    if not isinstance(data, dict):  # saved without splits: there is nothing to choose from
        data = {str(data.split or split or "train"): data}
        split = split or next(iter(data))
    chosen = split or "train"
    if chosen not in data:
        raise InputError(
            f"{str(source)!r} has no split {chosen!r}{did_you_mean(split or '', data)}; "
            f"choose with `split` one of: {', '.join(data)}."
        )
    return data[chosen], chosen


def dataset_columns(data: Any, name: str) -> dict[str, bool] | None:
    """Whether each column holds strings, from the features where they are known, else from the first rows."""
    if data.features is None:
        return head_columns(dataset_rows(data, name), is_string)
    return {column: getattr(feature, "dtype", None) in STRINGS for column, feature in data.features.items()}


def dataset_rows(data: Any, name: str, keep: Sequence[str] = ()) -> Iterator[Row]:
    """The numbered rows of a dataset; where columns to keep are named, the others are not even decoded."""
    number = 0
    try:
        for number, row in enumerate(data.select_columns(list(keep)) if keep else data, 1):
            yield number, row
    except Exception as error:  # a broken connection or file, in whatever class the library wraps it
        reason = describe_error(error)
        raise InputError(f"reading {name} stopped after row {number} ({reason}); try again.") from error
