"""Runs the experiments of a study one by one and saves each, so that a stopped study can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from isotrope.errors import StoreError
from isotrope.formats.json import to_plain
from isotrope.storage.files import (
    check_writable,
    name_path_in_errors,
    remove_leftovers,
    resolve_inside,
    write_folder,
    write_frame,
    write_text,
)
from isotrope.storage.locks import hold_lock
from isotrope.storage.provenance import describe_provenance, record_start
from isotrope.studies.figures import StudyFigure, save_figures
from isotrope.studies.model_class import find_class
from isotrope.studies.options import StudyOptions, to_file_name
from isotrope.studies.page import format_page
from isotrope.studies.result import Claim, FigureEntry, Part, Study, Table

_SETTINGS, _PART = "settings.json", "part.json"


class Results(NamedTuple):
    """The results of an experiment; its figures are drawn when it is saved."""

    tables: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    figures: Sequence[StudyFigure] = ()

    @classmethod
    def note(cls, text: str | Exception, where: str = "") -> Results:
        """Only a note: why an experiment has no result, and the part of the paper that is left open."""
        return cls(claims=[Claim("note", str(text), where)])


#: Experiments by their names: the functions that run them.
Experiments: TypeAlias = Mapping[str, Callable[[], Results]]


def repeat_for_models(options: StudyOptions, experiments: Mapping[str, Callable[..., Results]]) -> dict[str, Any]:
    """Repeat experiments, functions of the options and a model, for each model of a study."""
    return {
        f"{model} {name}": partial(run, options, model) for model in options.names for name, run in experiments.items()
    }


def run_study(
    name: str,
    paper: str,
    experiments: Experiments,
    options: StudyOptions,
    settings: Mapping[str, Any] | None = None,
    prepare: Callable[[], None] | None = None,
) -> Study:
    """Run all experiments that are not saved yet, and write study.json and study.html.

    Args:
        name: the name of the study.
        paper: authors, year and title of the paper.
        experiments: what to run, in this order; the names are unique as file names too.
        options: what is common to all studies.
        settings: further settings that must not change when the study is resumed.
        prepare: called once the folder is known to be usable; an error that it raises leaves no file behind.
    """
    output, started, parts = options.folder, record_start(), []
    chosen: dict[str, Any] = to_plain(options.settings() | dict(settings or {}))
    with hold_lock(output):
        check_folder(output, chosen, resume=options.resume)
        remove_leftovers(output, _SETTINGS, "study.*")
        remove_leftovers(output / "parts", "*")
        if prepare is not None:
            prepare()
        write_text(output / _SETTINGS, json.dumps(chosen, indent=1))
        classes: dict[str, str] = {}
        for number, (part, run) in enumerate(experiments.items(), start=1):
            folder = _part_folder(output, part)
            if not (folder / _PART).exists():
                if options.progress is not None:
                    options.progress(f"part {number} of {len(experiments)}: {part}", 0, None)
                _save(folder, part, _name_classes(run(), options, classes))
            parts.append(load_part(output, part))
        study = Study(name, paper, parts, chosen, describe_provenance(started, chosen, 0))
        write_text(output / "study.json", study.to_json())
        write_text(output / "study.html", format_page([study], output))
        return study


def _name_classes(results: Results, options: StudyOptions, known: dict[str, str]) -> Results:
    """Add the class of its model to each claim about one; known: classes that were found before, by model."""
    claims = []
    for claim in results.claims:
        if claim.model in options.names and not claim.model_class:
            if claim.model not in known:
                known[claim.model] = find_class(options.input(claim.model).load())
            claim = replace(claim, model_class=known[claim.model])
        claims.append(claim)
    return results._replace(claims=claims)


def check_folder(output: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Raise an error if a folder holds another study, or cannot be written.

    Args:
        output: the folder of the study.
        settings: the settings of the study that is to be written.
        resume: whether the folder may hold a study of the same settings.
    """
    path = output / _SETTINGS
    if path.exists():
        if not resume:
            raise StoreError(
                f"the folder {str(output)!r} already holds a study; "
                "choose another one with -o, continue it with --resume, or delete it."
            )
        saved = _read_json(path)
        if differing := [name for name in settings if saved.get(name) != settings[name]]:
            raise StoreError(
                f"the study in {str(output)!r} was begun with other {', '.join(differing)}; "
                "resume with the same command, or choose another folder with -o."
            )
        return
    check_writable(output)


def _part_folder(output: Path, name: str) -> Path:
    return output / "parts" / to_file_name(name)


def _save(folder: Path, name: str, results: Results) -> None:
    def fill(target: Path) -> None:
        for table in results.tables:
            write_frame(target / f"{table.name}.csv", table.frame)
            write_text(target / f"{table.name}.json", json.dumps(table.records(), indent=1, allow_nan=False))
        index = {
            "name": name,
            "tables": [
                {"name": t.name, "title": t.title, "columns": list(t.frame.columns), "shown": t.shown}
                for t in results.tables
            ],
            "claims": [to_plain(vars(claim)) for claim in results.claims],
            "figures": [asdict(figure) for figure in save_figures(results.figures, target)],
        }
        write_text(target / _PART, json.dumps(index, indent=1, ensure_ascii=False))

    folder.parent.mkdir(parents=True, exist_ok=True)
    write_folder(folder, fill)


def load_part(output: Path, name: str) -> Part:
    """Load the saved results of an experiment, so that a resumed study equals an uninterrupted one."""
    import pandas as pd

    folder = _part_folder(output, name)
    index = _read_json(folder / _PART)
    try:
        tables = []
        for table in index["tables"]:
            rows = _read_json(resolve_inside(folder, f"{table['name']}.json"))
            frame = pd.DataFrame(rows, columns=table["columns"])
            tables.append(Table(table["name"], table["title"], frame, table.get("shown", True)))
        claims = [Claim(**_restore_nan(claim)) for claim in index["claims"]]
        figures = [FigureEntry(**figure) for figure in index["figures"]]
        return Part(index["name"], f"{folder.parent.name}/{folder.name}", tables, claims, figures)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damage_error(folder / _PART) from error


def _restore_nan(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {key: float("nan") if value is None else value for key, value in claim.items()}


def _read_json(path: Path) -> Any:
    with name_path_in_errors(path):
        try:
            return json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise _damage_error(path) from error


def _damage_error(path: Path) -> StoreError:
    return StoreError(f"{str(path)!r} is damaged; delete {str(path.parent)!r} and resume.")
