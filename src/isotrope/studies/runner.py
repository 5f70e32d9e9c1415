"""Carrying a study out part by part, each written whole when it is done, so that a stopped study can go on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.errors import StoreError
from isotrope.formats.json import to_plain
from isotrope.pipeline import Progress
from isotrope.runs.run import inside
from isotrope.storage.files import remove_leftovers, told, write_folder, write_frame, write_text
from isotrope.storage.locks import held
from isotrope.storage.provenance import begin, provenance
from isotrope.studies.figures import Picture, draw_all
from isotrope.studies.page import page
from isotrope.studies.result import Claim, Drawn, Part, Study, Table

_SETTINGS, _PART = "settings.json", "part.json"


class Made(NamedTuple):
    """What a part gives."""

    tables: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Task:
    """A part to do: its name, unique within the study, and what makes it."""

    name: str
    make: Callable[[], Made]


def slug(name: str) -> str:
    """A name as part of a path.

    >>> slug("org/model-1.gguf")
    'model-1.gguf'
    """
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", Path(name).name).strip("-.") or "part"


def refuse(output: Path, wanted: Mapping[str, Any], *, resume: bool) -> None:
    """Refuse a folder that holds another study, or that cannot be written. wanted: the settings of this one."""
    path = output / _SETTINGS
    if path.exists():
        if not resume:
            raise StoreError(
                f"the folder {str(output)!r} already holds a study; "
                "choose another one with -o, continue it with --resume, or delete it."
            )
        begun = _read(path)
        if differing := [name for name in wanted if begun.get(name) != wanted[name]]:
            raise StoreError(
                f"the study in {str(output)!r} was begun with other {', '.join(differing)}; "
                "resume with the same command, or choose another folder with -o."
            )
        return
    there = output.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise StoreError(f"nothing can be written into {str(there)!r}; give another folder with -o.")


def carry_out(
    name: str,
    paper: str,
    tasks: Sequence[Task],
    settings: Mapping[str, Any],
    output: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    first: Callable[[], None] | None = None,
) -> Study:
    """Do all tasks that are not done yet, and write study.json and study.html beside their tables and figures.

    first: called once the folder is known to be right; what it refuses leaves nothing behind.
    """
    started, parts, wanted = begin(), [], to_plain(dict(settings))
    with held(output):
        refuse(output, wanted, resume=resume)
        remove_leftovers(output, _SETTINGS, "study.*")
        remove_leftovers(output / "parts", "*")
        if first is not None:
            first()
        write_text(output / _SETTINGS, json.dumps(wanted, indent=1))
        for number, task in enumerate(tasks):
            folder = output / "parts" / slug(task.name)
            if not (folder / _PART).exists():
                if progress is not None:
                    progress(f"part {number + 1} of {len(tasks)}: {task.name}", 0, None)
                _write(folder, task.name, task.make())
            parts.append(_part(folder))
        study = Study(name, paper, parts, wanted, provenance(started, wanted, 0))
        write_text(output / "study.json", study.to_json())
        write_text(output / "study.html", page([study], output))
        return study


def finished(output: Path, name: str) -> Part:
    """A part of a study that is done."""
    return _part(output / "parts" / slug(name))


def _write(folder: Path, name: str, made: Made) -> None:
    def fill(beside: Path) -> None:
        for table in made.tables:
            write_frame(beside / f"{table.name}.csv", table.frame)
            write_text(beside / f"{table.name}.json", json.dumps(table.records(), indent=1, allow_nan=False))
        index = {
            "name": name,
            "tables": [{"name": t.name, "title": t.title, "columns": list(t.frame.columns)} for t in made.tables],
            "claims": [to_plain(vars(claim)) for claim in made.claims],
            "figures": [asdict(drawn) for drawn in draw_all(made.pictures, beside)],
        }
        write_text(beside / _PART, json.dumps(index, indent=1, ensure_ascii=False))

    folder.parent.mkdir(parents=True, exist_ok=True)
    write_folder(folder, fill)


def _part(folder: Path) -> Part:
    """A part as it was written, so that a study that was resumed is the same as one in one go."""
    import pandas as pd

    index = _read(folder / _PART)
    try:
        tables = [
            Table(t["name"], t["title"], pd.DataFrame(_read(inside(folder, f"{t['name']}.json")), columns=t["columns"]))
            for t in index["tables"]
        ]
        claims = [Claim(**_numbers(claim)) for claim in index["claims"]]
        figures = [Drawn(**drawn) for drawn in index["figures"]]
        return Part(index["name"], f"{folder.parent.name}/{folder.name}", tables, claims, figures)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(folder / _PART) from error


def _numbers(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {key: float("nan") if value is None else value for key, value in claim.items()}


def _read(path: Path) -> Any:
    with told(path):
        try:
            return json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise _damaged(path) from error


def _damaged(path: Path) -> StoreError:
    return StoreError(f"{str(path)!r} is damaged; delete {str(path.parent)!r} and resume.")
