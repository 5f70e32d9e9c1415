"""Run files of TREC: rankings that trec_eval, ir-measures and ranx read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from isotrope.errors import InputError, StoreError
from isotrope.evaluation.ranking import NOTHING, Ranking
from isotrope.storage.files import check_writable, write_folder

#: Characters that names of files, and tags, keep.
_OTHER = re.compile(r"[^\w.=+-]+")


def check_run_files(folder: str | Path, ids: Sequence[str] = ()) -> None:
    """Check that run files can be written: into a new folder, for ids without blanks, which separate the columns."""
    path = Path(folder)
    if path.exists():
        raise StoreError(
            f"{str(folder)!r} is there already, and is never written over; name a new folder of run files."
        )
    check_writable(path)
    bad = [name for name in ids if len(name.split()) != 1]
    if bad:
        raise InputError(
            f"{len(bad):,} ids contain blanks, which separate the columns of a run file (the first: {bad[0]!r}); "
            "rename them, or leave out the run files."
        )


def write_run_files(
    folder: str | Path, rankings: Mapping[str, Ranking], queries: Sequence[str], documents: Sequence[str]
) -> list[Path]:
    """Write a run file for each repair into a new folder, all or none: query, Q0, document, rank, score and tag.

    trec_eval reads scores as float32 and sorts by them. So a score that float32 cannot tell from the one before it is
    lowered by the smallest step of float32, and every reader finds the same ranking.

    Args:
        folder: The folder, which must be new.
        rankings: What was found, by the name of the repair.
        queries: Ids of the queries.
        documents: Ids of the documents.

    Returns:
        The files, in the order of the repairs.
    """
    check_run_files(folder)
    names = _name_files(list(rankings))

    def fill(temporary: Path) -> None:
        for repair, name in names.items():
            lines = _format_lines(rankings[repair], queries, documents, f"isotrope-{name}")
            with (temporary / f"{name}.run").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)

    write_folder(Path(folder), fill)
    return [Path(folder) / f"{name}.run" for name in names.values()]


def _name_files(repairs: Sequence[str]) -> dict[str, str]:
    """A short name for each repair that a file can have; a number behind it where two would have the same.

    >>> _name_files(["none", "softdecay:alpha=-0.2", "./saved/a", "saved/a"])
    {'none': 'none', 'softdecay:alpha=-0.2': 'softdecay-alpha=-0.2', './saved/a': 'saved-a', 'saved/a': 'saved-a-2'}
    """
    found: dict[str, str] = {}
    for repair in repairs:
        name = first = _OTHER.sub("-", repair).strip("-.") or "repair"
        number = 2
        while name in found.values():
            name, number = f"{first}-{number}", number + 1
        found[repair] = name
    return found


def _format_lines(ranking: Ranking, queries: Sequence[str], documents: Sequence[str], tag: str) -> Iterator[str]:
    for query, numbers, cosines in zip(queries, ranking.documents, ranking.cosines, strict=True):
        last = np.float32(np.inf)
        for rank, (number, cosine) in enumerate(zip(numbers, cosines, strict=True), 1):
            if number == NOTHING:
                break
            last = min(np.float32(cosine), np.nextafter(last, np.float32(-np.inf)))
            yield f"{query} Q0 {documents[number]} {rank} {_format_float32(last)} {tag}\n"


def _format_float32(score: np.float32) -> str:
    """The shortest digits that give the same float32 again, without an exponent.

    >>> _format_float32(np.float32(0.1)), _format_float32(np.float32(-1e-7))
    ('0.1', '-0.0000001')
    """
    return np.format_float_positional(score, trim="-")
