"""Files of labelled pairs: what calibration knows about which rows belong together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.corpora.files import TABLES, suffix_of
from isotrope.storage.files import check_regular

#: Names of the two columns of a pair, and of its label.
_SIDES = (("id1", "id2"), ("sentence1", "sentence2"), ("text1", "text2"), ("query-id", "corpus-id"))
_LABELS = ("label", "score", "grade")


class LabelledPair(NamedTuple):
    """Two ids or texts and their grade; a higher grade is more alike."""

    first: str
    second: str
    grade: float


def read_pairs(pairs: Any) -> list[LabelledPair]:
    """Read labelled pairs from a table (TSV, CSV, JSON Lines, parquet), or take them from a list of three values each.

    >>> read_pairs([("a", "b", 1)])
    [LabelledPair(first='a', second='b', grade=1.0)]
    """
    if isinstance(pairs, str | Path):
        return _read_table(Path(pairs))
    found = []
    for number, pair in enumerate(pairs):
        values = list(pair)
        if len(values) != 3:
            raise InputError(f"pair {number} has {len(values)} values, expected three: two ids or texts and a label.")
        found.append(_make_pair(values, f"pair {number}"))
    return _check_some(found, "the list")


def _read_table(path: Path) -> list[LabelledPair]:
    check_regular(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; give a table of labelled pairs with --pairs.")
    form = TABLES.get(suffix_of(path))
    if form is None:
        raise InputError(f"{str(path)!r} is no table of pairs; expected a file that ends in {', '.join(TABLES)}.")
    columns = form.columns(path) or {}
    names = _choose_columns(path, list(columns))
    found = []
    for number, row in form.rows(path, names):
        if not isinstance(row, Mapping):
            raise InputError(f"{form.place} {number} of {path} is no record with columns; correct it.")
        found.append(_make_pair([row.get(name) for name in names], f"{form.place} {number} of {path}"))
    return _check_some(found, str(path))


def _check_some(found: list[LabelledPair], where: str) -> list[LabelledPair]:
    if not found:
        raise InputError(f"{where} holds no pair; give labelled pairs.")
    return found


def _choose_columns(path: Path, columns: Sequence[str]) -> list[str]:
    sides = next((pair for pair in _SIDES if set(pair) <= set(columns)), None)
    label = next((name for name in _LABELS if name in columns), None)
    if sides is None or label is None:
        raise InputError(
            f"{path} has the columns {', '.join(columns) or 'none'}; expected id1 and id2, or sentence1 and sentence2, "
            f"and one of {', '.join(_LABELS)}."
        )
    return [*sides, label]


def _make_pair(values: Sequence[Any], where: str) -> LabelledPair:
    first, second, label = values
    if any(side is None or not str(side).strip() for side in (first, second)):
        raise InputError(f"{where} lacks an id or a text; correct or remove it.")
    try:
        grade = float(label)
    except (TypeError, ValueError):
        grade = math.nan
    if not math.isfinite(grade):
        raise InputError(f"{where} has the label {label!r}, expected a number; correct or remove it.")
    return LabelledPair(str(first), str(second), grade)


def decide_matches(grades: NDArray[np.float64], match_from: float | None) -> NDArray[np.bool_]:
    """Which grades are matches: 1 of labels 0 and 1; of other grades those from a given one on.

    >>> decide_matches(np.array([0.0, 3.0, 5.0]), 4).tolist()
    [False, False, True]
    """
    if match_from is None and not np.isin(grades, (0.0, 1.0)).all():
        raise InputError(
            f"the labels go from {grades.min():g} to {grades.max():g}, expected 0 and 1; "
            "say from which grade on a pair is a match with --match-from."
        )
    return np.asarray(grades >= (1.0 if match_from is None else match_from))


def find_rows(asked: Iterable[str], known: Mapping[str, int], what: str) -> NDArray[np.int64]:
    """The number of the row of each id.

    Args:
        asked: ids of a file of labels.
        known: numbers of rows by id.
        what: what has no such row, as in "the pairs name 3 ids that the vectors do not have".
    """
    numbers = [known.get(name, -1) for name in asked]
    if missing := [name for name, number in zip(asked, numbers, strict=True) if number < 0]:
        raise InputError(
            f"{what} {len(missing):,} of {len(numbers):,} times an id that no row has (the first: {missing[0]!r}); "
            "give files that belong together, and ids with --id-column."
        )
    return np.array(numbers, dtype=np.int64)
