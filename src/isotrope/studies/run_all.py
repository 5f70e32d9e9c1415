"""Runs all four studies, with one page over them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.errors import InputError
from isotrope.formats.json import format_json
from isotrope.sources.models.load import Loaded
from isotrope.storage.files import write_text
from isotrope.storage.locks import hold_lock
from isotrope.studies.anisotropy import anisotropy
from isotrope.studies.latent_geometry import latent_geometry
from isotrope.studies.norm_variance import norm_variance
from isotrope.studies.options import StudyOptions
from isotrope.studies.page import format_page
from isotrope.studies.result import Study
from isotrope.studies.uniformity import uniformity


class _Entry(NamedTuple):
    """A study: its function, whether it reads data sets and fine-tunes, and whether it reads images and sounds too."""

    run: Callable[..., Study]
    fine_tunes: bool = False
    reads_media: bool = False


#: The studies by name, in the order of the papers.
STUDIES = {
    "uniformity": _Entry(uniformity, fine_tunes=True),
    "anisotropy": _Entry(anisotropy, reads_media=True),
    "latent-geometry": _Entry(latent_geometry, fine_tunes=True),
    "norm-variance": _Entry(norm_variance),
}


def all_studies(
    *,
    output: str | Path,
    models: Sequence[str | Path | Loaded] = (),
    images: str | Path | None = None,
    sounds: str | Path | None = None,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    train_rows: int | None = None,
    **common: Any,
) -> list[Study]:
    """Run each study in a folder of its own below `output`, and write `studies.html` and `studies.json` over all.

    Args:
        output: the folder for all studies.
        models: hub ids, folders, files or loaded models; a model of images or sounds is studied by `anisotropy` alone.
        images: what image models read, as for a scan.
        sounds: what audio models read, as for a scan.
        data: the folder of the data sets; without the authors' files of latent geometry in it, that study is left
            out with a warning.
        tasks: tasks of GLUE, for the two studies that fine-tune.
        train_rows: the most training rows of a task.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.
    """
    options = StudyOptions(output=output, models=models, images=images, sounds=sounds, data=data, **common)
    readers = [options.reference(name) for name in options.names if options.modality(name) == "text"]
    of_text = [model for model in readers if model is not None]
    studies = []
    with hold_lock(options.folder):
        for name, study in STUDIES.items():
            if reason := _find_obstacle(name, options, readers=bool(readers) or study.reads_media):
                warnings.warn(f"the study {name} is left out: {reason}", stacklevel=2)
                continue
            more = {"data": data, "tasks": tasks, "train_rows": train_rows} if study.fine_tunes else {}
            more |= {"images": images, "sounds": sounds} if study.reads_media else {}
            chosen = models if study.reads_media else of_text
            studies.append(study.run(output=options.folder / name, models=chosen, **common, **more))
        write_text(options.folder / "studies.html", format_page(studies, options.folder))
        document = {"studies": [study.to_dict() for study in studies]}
        write_text(options.folder / "studies.json", format_json(document))
    return studies


def _find_obstacle(name: str, options: StudyOptions, *, readers: bool) -> str | None:
    """Why a study cannot be run, None where it can; readers: whether a model reads what the study gives it."""
    if not readers:
        return "it reads text, and none of the models does"
    if name == "latent-geometry" and not _has_authors_files(options):
        return "the data (--data) hold no latent_geometry folder"
    return None


def _has_authors_files(options: StudyOptions) -> bool:
    try:
        return (options.data_folder("latent_geometry") / "alt_model_metrics.csv").is_file()
    except InputError:
        return False
