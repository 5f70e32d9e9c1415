"""Runs all four studies, with one page over them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.formats.json import format_json
from isotrope.storage.files import write_text
from isotrope.storage.locks import hold_lock
from isotrope.studies.anisotropy import anisotropy
from isotrope.studies.latent_geometry import latent_geometry
from isotrope.studies.norm_variance import norm_variance
from isotrope.studies.options import StudyOptions
from isotrope.studies.page import format_page
from isotrope.studies.result import Study
from isotrope.studies.uniformity import uniformity

#: The studies by name, in the order of the papers, and whether they read data sets and fine-tune.
STUDIES: dict[str, tuple[Any, bool]] = {
    "uniformity": (uniformity, True),
    "anisotropy": (anisotropy, False),
    "latent-geometry": (latent_geometry, True),
    "norm-variance": (norm_variance, False),
}


def all_studies(
    *,
    output: str | Path,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    train_rows: int | None = None,
    **common: Any,
) -> list[Study]:
    """Run each study in a folder of its own below `output`, and write `studies.html` and `studies.json` over all.

    Args:
        output: the folder for all studies.
        data: the folder of the data sets; without the authors' files of latent geometry in it, that study is left
            out with a warning.
        tasks: tasks of GLUE, for the two studies that fine-tune.
        train_rows: the most training rows of a task.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.
    """
    options = StudyOptions(output=output, data=data, **common)
    studies = []
    with hold_lock(options.folder):
        for name, (run, fine_tunes) in STUDIES.items():
            if name == "latent-geometry" and not _has_authors_files(options):
                warnings.warn(
                    f"the study {name} is left out: the data (--data) hold no latent_geometry folder", stacklevel=2
                )
                continue
            more = {"data": data, "tasks": tasks, "train_rows": train_rows} if fine_tunes else {}
            studies.append(run(output=options.folder / name, **common, **more))
        write_text(options.folder / "studies.html", format_page(studies, options.folder))
        document = {"studies": [study.to_dict() for study in studies]}
        write_text(options.folder / "studies.json", format_json(document))
    return studies


def _has_authors_files(options: StudyOptions) -> bool:
    try:
        return (options.data_folder("latent_geometry") / "alt_model_metrics.csv").is_file()
    except InputError:
        return False
