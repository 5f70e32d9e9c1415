"""All four studies of some models, with one page over them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.formats.json import format_json
from isotrope.storage.files import write_text
from isotrope.storage.locks import held
from isotrope.studies.anisotropy.study import anisotropy
from isotrope.studies.latent_geometry.study import latent_geometry
from isotrope.studies.norm_variance.study import norm_variance
from isotrope.studies.options import Options
from isotrope.studies.page import page
from isotrope.studies.result import Study
from isotrope.studies.uniformity.study import uniformity

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
    models: Sequence[str | Path] = (),
    text: str | Path | Sequence[str] | None = None,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    train_rows: int | None = None,
    quick: bool = False,
    seed: int = 0,
    batch_size: int | None = None,
    device: str = "auto",
    resume: bool = False,
    progress: Any = None,
    say: Any = None,
) -> list[Study]:
    """Each study in a folder of its own below `output`, and `studies.html` and `studies.json` over all.

    Without the authors' files of latent geometry (`data`), that study is left out with a warning. tasks,
    train_rows: of fine-tuning, for the two studies that do.
    """
    shared: dict[str, Any] = {
        "models": models,
        "text": text,
        "quick": quick,
        "seed": seed,
        "batch_size": batch_size,
        "device": device,
        "resume": resume,
        "progress": progress,
        "say": say,
    }
    options = Options(output=output, data=data, **shared)
    done = []
    with held(options.folder):
        for name, (run, reads) in STUDIES.items():
            if name == "latent-geometry" and not _has_models(options):
                warnings.warn(
                    f"the study {name} is left out: the data (--data) hold no latent_geometry folder", stacklevel=2
                )
                continue
            more = {"data": data, "tasks": tasks, "train_rows": train_rows} if reads else {}
            done.append(run(output=options.folder / name, **shared, **more))
        write_text(options.folder / "studies.html", page(done, options.folder))
        everything = {"studies": [study.to_dict() for study in done]}
        write_text(options.folder / "studies.json", format_json(everything))
    return done


def _has_models(options: Options) -> bool:
    try:
        return (options.data_folder("latent_geometry") / "alt_model_metrics.csv").is_file()
    except InputError:
        return False
