"""Mean cosine and drift of the layers of each model, and of all models of a study together."""

from __future__ import annotations

import math
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.style import COLOURS, GREY, PAGE_WIDTH
from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.text.model_source import ModelSource
from isotrope.studies.anisotropy.class_claims import ALIKE, judge_classes
from isotrope.studies.anisotropy.drift import (
    CORRELATIONS,
    correlate_changes,
    correlate_layers,
    join_drift,
    judge_drift,
    make_p_values_figure,
)
from isotrope.studies.anisotropy.whole_maps import measure_whole_maps
from isotrope.studies.figures import make_figure, run_figures
from isotrope.studies.model_class import CLASSES, find_class, find_family, is_trained
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Table
from isotrope.studies.runner import Results, load_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The measures of each layer.
BY_LAYER = ("mean_cosine", "drift_norm", "drift_share", "mean_squared_norm")

#: Rows of the sample; for convolutions so many images, whose large maps have more rows: an interval needs 40 of them.
_ROWS, _IMAGES = 20_000, 64

#: What is known of a model, and stands in the tables over all models.
_OF_MODEL = ("model", "class", "family", "trained")


def measure_layers(options: StudyOptions, model: str, *, maps: str = "places") -> Results:
    """Figs. 1 to 5 and 11 for one model.

    Args:
        options: of the study.
        model: its short name.
        maps: what the rows of convolutions are, the places of a map or whole maps.
    """
    source = options.source(model)
    assert isinstance(source, ModelSource)
    loaded = source.loaded
    facts = dict(
        zip(_OF_MODEL, (model, find_class(loaded), find_family(loaded), is_trained(loaded.model)), strict=True)
    )
    if maps == "whole" and facts["class"] == "convolution":
        layers, figures = pd.DataFrame(measure_whole_maps(source)), []
    else:
        sample = _ROWS if facts["class"] != "convolution" else max(_ROWS, _IMAGES * _count_places(source))
        layers = pd.DataFrame(_scan_layers(options, model, source, sample))
        figures = run_figures(options.run_folder(model), ["mean_cosine", "drift"])
    values = layers["drift_norm"].tolist(), layers["mean_cosine"].tolist()
    drift = facts | {"layers": len(layers)} | correlate_layers(*values) | correlate_changes(*values)
    title = f"Correlation over layers of the norm of the mean with the mean cosine, {model}"
    tables = [
        Table("layers", f"Mean cosine, drift and the cosine that is left without the mean, by layer, {model}", layers),
        Table("drift", title, pd.DataFrame([drift])),
    ]
    return Results(tables, (), figures)


def _count_places(source: ModelSource) -> int:
    """The most places of a map that the first images have in any layer."""
    first = [batch.rows.sequence for batch in islice(source.batches(), source.parts)]
    return max((int(np.unique(s, return_counts=True)[1].max()) for s in first if len(s)), default=1)


def _scan_layers(options: StudyOptions, model: str, source: ModelSource, sample: int) -> list[dict[str, Any]]:
    """A record for each layer, from a scan."""
    names = [f"drift_correlation_{name}" for name in CORRELATIONS]  # for the figure
    findings = options.scan(model, source, ",".join((*BY_LAYER, *names)), sample=sample)
    rows = []
    for layer, by in iterate_layers(findings):
        cosine = by["mean_cosine"]
        row: dict[str, Any] = {"layer": findings.layer_names.get(str(layer), str(layer))}
        row |= {"mean_cosine": cosine.value, "low": cosine.low, "high": cosine.high}
        row |= {"drift_norm": by["drift_norm"].value, "drift_share": by["drift_share"].value}
        row["rms_norm"] = math.sqrt(by["mean_squared_norm"].value)
        rows.append(row | {"centred_mean_cosine": _compute_centred_cosine(options, model, layer)})
    return rows


def _compute_centred_cosine(options: StudyOptions, model: str, layer: Any) -> float:
    """Mean cosine of the sampled rows less the mean of all."""
    summary = saved_summary(options.run_folder(model), layer)
    assert summary.sample is not None
    return get("mean_cosine")(summary.sample.values - summary.moments.mean)


def join_layers(options: StudyOptions) -> Results:
    """Figs. 1 to 5 and 11 over all models, with the claims by class."""
    layers, drift = [], []
    for model in options.names:
        frame, facts = (table.frame for table in load_part(options.folder, f"{model} layers").tables)
        depth = [i / max(len(frame) - 1, 1) for i in range(len(frame))]
        known = {name: facts[name][0] for name in _OF_MODEL}
        layers.append(frame[["layer", "mean_cosine", "low", "high"]].assign(**known, depth=depth))
        drift.append(facts)
    together, tests = pd.concat(layers, ignore_index=True), join_drift(drift)
    title = "Mean cosine of rows by depth, one panel for each class and one line for each model."
    count = together["class"].nunique()
    height = 2.5 * math.ceil(count / 3)
    figure = make_figure("layers", title, partial(_draw_layers, together), width=PAGE_WIDTH, height=height)
    tables = [
        Table("drift", "Correlation of drift and mean cosine over the layers of each model, by class", tests),
        Table("layers", "Mean cosine by layer of all models", together[[*_OF_MODEL, *_LAYER_COLUMNS]]),
    ]
    claims = [*judge_classes(together), *judge_drift(tests)]
    return Results(tables, claims, [figure, make_p_values_figure(tests)])


_LAYER_COLUMNS = ("layer", "depth", "mean_cosine", "low", "high")


def _draw_layers(layers: pd.DataFrame, figure: Figure) -> None:
    """A panel for each class."""
    classes = [name for name in CLASSES if name in set(layers["class"])]
    columns = min(len(classes), 3)
    panels = figure.subplots(math.ceil(len(classes) / columns), columns, squeeze=False, sharey=True).flat
    for name, axes in zip(classes, panels, strict=False):
        for number, (model, rows) in enumerate(layers[layers["class"] == name].groupby("model", sort=False)):
            style = {"color": COLOURS[number % len(COLOURS)], "linestyle": ("-", "--", ":")[number // len(COLOURS) % 3]}
            axes.plot(rows["depth"], rows["mean_cosine"].astype(float), marker=".", label=str(model), **style)
        for line in (0.0, ALIKE):
            axes.axhline(line, color=GREY, linewidth=0.6)
        axes.set_title(name)
        axes.set_xlabel("relative depth")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28))
    for axes in list(panels):
        axes.set_axis_off()
    figure.supylabel("mean cosine")
