"""[CLS] uniformity by layer in its two readings: within a sequence, and across sequences (Fig. 2 of Yan et al. 2022).

The paper speaks of the average cosine of [CLS] tokens. Its code compares [CLS] with the tokens of its sequence,
which is the default; across sequences, [CLS] is compared with the [CLS] of others.
"""

from __future__ import annotations

import pandas as pd

from isotrope.measures import get
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.studies.figures import make_overlay_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Table
from isotrope.studies.runner import Results

#: The variants of the measure, with their names in the table.
_READINGS = {"definition": "within a sequence", "published": "within, with itself", "across": "across sequences"}


def tabulate_cls_uniformity(options: StudyOptions, model: str) -> Results:
    """Fig. 2: [CLS] uniformity by layer in both readings, from the statistics that the experiment "layers" kept."""
    saved = SavedStatistics.of_run(Run(options.run_folder(model)))
    rows = []
    for layer in saved.layers:
        found = saved.load(layer).sequences
        values = {
            name: float("nan") if found is None else get("cls_uniformity")(found, variant=variant)
            for variant, name in _READINGS.items()
        }
        rows.append({"model": model, "layer": layer} | values)
    frame = pd.DataFrame(rows)
    title = f"[CLS] uniformity by layer within a sequence and across sequences, {model}"
    caption = "Mean cosine of [CLS] to the other tokens of its sequence (left), and to the [CLS] of other sequences."
    columns = {name: name for name in ("within a sequence", "across sequences")}
    figure = make_overlay_figure("cls-uniformity", caption, frame, columns)
    return Results([Table("cls_uniformity", title, frame)], (), [figure])
