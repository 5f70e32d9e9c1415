"""Sentence pairs with gold scores: STS-B, STS12 to STS16 and SICK-R, from a folder of files or from the hub.

A folder, or `sts/` in it, holds `<set>-test.csv` and, for years with several subsets, `<set>.<subset>-test.csv`. Lines
are tab-separated, without header and quotes: genre, file, year, id, score, sentence1, sentence2.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.registry import did_you_mean
from isotrope.sources.corpora.datasets import dataset_rows, load_split
from isotrope.storage.files import check_regular

#: The sets in the order of published tables, and their data sets on the hub.
HUB: dict[str, str | Path] = {
    "sts-b": "mteb/stsbenchmark-sts",
    "sickr": "mteb/sickr-sts",
    "sts12": "mteb/sts12-sts",
    "sts13": "mteb/sts13-sts",
    "sts14": "mteb/sts14-sts",
    "sts15": "mteb/sts15-sts",
    "sts16": "mteb/sts16-sts",
}

#: How a set is scored: plain mean over its subsets (Yan et al. 2022), or all pairs at once (Gao et al. 2021, SimCSE).
PROTOCOLS = ("paper", "concatenated")

_ENDING = "-test.csv"
_YEAR = re.compile(r"sts\d\d")
_COLUMNS = 7


class Pair(NamedTuple):
    """Two sentences, their gold score of similarity, and the name of their subset."""

    first: str
    second: str
    gold: float
    subset: str


@dataclass(frozen=True)
class Pairs:
    """Pairs of one correlation. left_out: number of pairs left out, by reason."""

    name: str
    pairs: Sequence[Pair] = field(repr=False)
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def gold(self) -> NDArray[np.float64]:
        return np.array([pair.gold for pair in self.pairs])


@dataclass(frozen=True)
class PairSet:
    """A set of pairs; its score is the plain mean over its parts, which are its subsets or the whole set."""

    name: str
    parts: tuple[Pairs, ...]

    @property
    def sentences(self) -> list[str]:
        """All first sentences of all parts, then all second sentences."""
        pairs = [pair for part in self.parts for pair in part.pairs]
        return [pair.first for pair in pairs] + [pair.second for pair in pairs]

    @property
    def left_out(self) -> dict[str, int]:
        return dict(sum((Counter(part.left_out) for part in self.parts), Counter[str]()))


def read_sets(names: Sequence[str] | None, data: str | Path | None, protocol: str) -> list[PairSet]:
    """Read sets of sentence pairs.

    Args:
        names: names of sets, by default all that are there.
        data: a folder; None for the folder ISOTROPE_DATA, or else the hub.
        protocol: "paper" for the subsets of a year as parts, "concatenated" for one part.
    """
    if protocol not in PROTOCOLS:
        hint = did_you_mean(protocol, PROTOCOLS)
        raise InputError(f"there is no protocol {protocol!r}{hint}; say {' or '.join(PROTOCOLS)}.")
    folder = data or os.environ.get("ISOTROPE_DATA")
    if folder is None:
        return [_read_from_hub(name, protocol) for name in _select_names(names, HUB, "on the hub")]
    files = _find_files(Path(folder))
    whole = _sort_names({name.partition(".")[0] for name in files})
    selected = _select_names(names, dict.fromkeys([*whole, *files]), f"in {str(folder)!r}", default=whole)
    return [_read_from_files(name, files, protocol) for name in selected]


def _find_files(root: Path) -> dict[str, Path]:
    """Find the files of a folder, by the names of their sets and subsets."""
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}; give the one that holds the sets, such as sts-b{_ENDING}.")
    folder = root / "sts" if (root / "sts").is_dir() else root
    found = {path.name.removesuffix(_ENDING): path for path in sorted(folder.glob(f"*{_ENDING}"))}
    if not found:
        raise InputError(f"{str(folder)!r} holds no set; expected files named as sts-b{_ENDING}.")
    return found


def _sort_names(names: Iterable[str]) -> list[str]:
    """Sort names in the order of published tables, others after them."""
    order = list(HUB)
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _select_names(
    names: Sequence[str] | None, known: Iterable[str], where: str, default: Sequence[str] | None = None
) -> list[str]:
    known = list(known)
    for name in names or ():
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(n for n in known if '.' not in n)}"
            raise InputError(f"there is no set {name!r} {where}{hint}.")
    return list(dict.fromkeys(names or default or known))


def _read_from_files(name: str, files: dict[str, Path], protocol: str) -> PairSet:
    """Read a set from its own file, or from the files of its subsets."""
    if protocol == "concatenated" and name in files:
        return PairSet(name, (_make_pairs(name, _read_lines(files[name])),))
    subsets = tuple(_make_pairs(sub, _read_lines(path)) for sub, path in files.items() if sub.startswith(f"{name}."))
    whole = _make_pairs(name, _read_lines(files[name])) if name in files else _concatenate(name, subsets)
    if protocol == "concatenated":
        return PairSet(name, (whole,))
    if not subsets:
        return PairSet(name, _split_by_column(whole) if _YEAR.fullmatch(name) else (whole,))
    if sum(map(len, subsets)) != len(whole):
        raise InputError(
            f"the subsets of {name} hold {sum(map(len, subsets)):,} pairs in all, {files[name].name} {len(whole):,}; "
            "add the files that are missing, or remove all subsets."
        )
    return PairSet(name, subsets)


def _concatenate(name: str, subsets: Sequence[Pairs]) -> Pairs:
    return Pairs(name, [pair for part in subsets for pair in part.pairs], PairSet(name, tuple(subsets)).left_out)


def _split_by_column(whole: Pairs) -> tuple[Pairs, ...]:
    """Split the pairs of a year into subsets by the column that names their files."""
    names = list(dict.fromkeys(pair.subset for pair in whole.pairs))
    if len(names) < 2:
        raise InputError(
            f"the subsets of {whole.name} are not known: all pairs name the same file, and there is no "
            f"{whole.name}.SUBSET{_ENDING}; add them, or say --protocol concatenated."
        )
    parts = [Pairs(f"{whole.name}.{name}", [p for p in whole.pairs if p.subset == name]) for name in names]
    return (Pairs(parts[0].name, parts[0].pairs, whole.left_out), *parts[1:])


def _read_from_hub(name: str, protocol: str) -> PairSet:
    """Read a set from the hub."""
    if protocol == "paper" and _YEAR.fullmatch(name):
        raise InputError(
            f"the hub's {name} does not say which subset a pair is of, which the protocol paper needs; "
            "name a folder with --data, or say --protocol concatenated."
        )
    address = HUB[name]
    try:
        data, _ = load_split(address, "test")
    except InputError as error:
        raise InputError(
            f"the set {name} is not here: {str(error).rstrip('.')}, or name a folder with --data."
        ) from error
    return PairSet(name, (_make_pairs(name, _read_rows(dataset_rows(data, str(address)), str(address))),))


#: The position of a pair in its file, its score as text or number, its sentences and its subset.
_RawPair = tuple[str, Any, Any, Any, str]


def _read_rows(rows: Iterable[tuple[int, Any]], address: str) -> Iterator[_RawPair]:
    for number, row in rows:
        try:
            yield f"row {number} of {address}", row["score"], row["sentence1"], row["sentence2"], ""
        except (KeyError, TypeError):
            have = ", ".join(row) if isinstance(row, dict) else type(row).__name__
            raise InputError(f"{address} has no columns score, sentence1 and sentence2; it has {have}.") from None


def _read_lines(path: Path) -> Iterator[_RawPair]:
    check_regular(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{str(path)!r} cannot be read as UTF-8 text ({error}); check the file.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if len(cells) != _COLUMNS:
            raise InputError(
                f"line {number} of {str(path)!r} has {len(cells)} columns, expected {_COLUMNS} between tabs: "
                "genre, file, year, id, score, sentence1, sentence2."
            )
        yield f"line {number} of {str(path)!r}", cells[4], cells[5], cells[6], cells[1]


def _make_pairs(name: str, found: Iterable[_RawPair]) -> Pairs:
    """Select the pairs that have a score and two sentences, and count the others."""
    pairs, left_out = [], Counter[str]()
    for where, score, first, second, subset in found:
        gold = _parse_score(score, where)
        if math.isnan(gold):
            left_out["without a score"] += 1
        elif not (first and first.strip() and second and second.strip()):
            left_out["with an empty sentence"] += 1
        else:
            pairs.append(Pair(first, second, gold, subset))
    if not pairs:
        raise InputError(f"the set {name} has no pair with a score and two sentences; check its file.")
    return Pairs(name, pairs, dict(left_out))


def _parse_score(score: Any, where: str) -> float:
    """Parse a gold score; NaN where there is none."""
    if score is None or (isinstance(score, str) and not score.strip()):
        return math.nan
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise InputError(f"{where} has the score {score!r}, expected a number or nothing.") from None
    if math.isinf(value):
        raise InputError(f"{where} has the score {score!r}, expected a number or nothing.")
    return value
