"""Anisotropy of layers, drift, and blocks under a common bias: the protocol of Godey et al. 2023."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrope.drawing.style import COLOURS, GREY
from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.studies.anisotropy.blocks import ALIKE, measure_blocks, measure_fresh_block, measure_signs
from isotrope.studies.figures import make_figure, run_figures
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Results, load_part, repeat_for_models, run_study
from isotrope.studies.transformer_block import check_block_width, take_block

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "Godey, de la Clergerie and Sagot 2023, Is Anisotropy Inherent to Transformers?"

_BY_LAYER = ("mean_cosine", "drift_norm", "drift_share", "mean_squared_norm")
_DRIFT = tuple(
    f"drift_correlation_{kind}{end}" for kind in ("spearman", "pearson") for end in ("", "_p", "_p_asymptotic")
)


def anisotropy(
    *,
    output: str | Path,
    images: str | Path | None = None,
    sounds: str | Path | None = None,
    texts: int | None = None,
    width: int = 768,
    blocks: Sequence[int] | None = None,
    **common: Any,
) -> Study:
    """Mean cosine and drift of every layer, and fresh and trained blocks under a common bias.

    Args:
        output: the folder for tables, figures and runs.
        images: what image models read, as for a scan.
        sounds: what audio models read, as for a scan.
        texts: the most texts, images or sounds to read.
        width: the width of the fresh block, 768 as in BERT.
        blocks: blocks of the models by number, negative ones from the end; None for the first and the middle one.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.

    References:
        Godey, de la Clergerie and Sagot 2023, Is Anisotropy Inherent to Transformers?
    """
    options = StudyOptions(output=output, images=images, sounds=sounds, texts=texts, **common)
    check_block_width(width)
    experiments = repeat_for_models(options, {"layers": _measure_layers})
    experiments |= {
        "all layers": partial(_join_layers, options),
        "fresh block": partial(measure_fresh_block, options, width),
        "fresh block signs": partial(measure_signs, options, width),
    }
    experiments |= repeat_for_models(options, {"blocks": partial(measure_blocks, numbers=blocks)})
    media = {"images": str(images) if images else None, "sounds": str(sounds) if sounds else None}
    settings = {"width": width, "blocks": None if blocks is None else list(blocks), **media}
    return run_study("anisotropy", PAPER, experiments, options, settings, partial(_prepare, options, blocks))


def _prepare(options: StudyOptions, blocks: Sequence[int] | None) -> None:
    """Raise an error for blocks that a model does not have; say how long reading will take."""
    for model in options.names if blocks and not options.resume else ():
        loaded = options.input(model).load()
        for number in blocks or ():
            take_block(loaded, number)
    options.announce(",".join(_BY_LAYER), 1.0)


def _measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 1 to 5 and 11 for one model."""
    findings = options.scan(model, options.source(model), ",".join((*_BY_LAYER, *_DRIFT)))
    rows = []
    for layer, by in iterate_layers(findings):
        cosine = by["mean_cosine"]
        row: dict[str, Any] = {"layer": findings.layer_names.get(str(layer), str(layer))}
        row |= {"mean_cosine": cosine.value, "low": cosine.low, "high": cosine.high}
        row |= {"drift_norm": by["drift_norm"].value, "drift_share": by["drift_share"].value}
        row["rms_norm"] = math.sqrt(by["mean_squared_norm"].value)
        rows.append(row | {"centred_mean_cosine": _compute_centred_cosine(options, model, layer)})
    over_layers = {r.measure: r.value for r in findings.readings if r.layer is None}
    drift = {name.removeprefix("drift_correlation_"): over_layers[name] for name in _DRIFT}
    layers, correlations = pd.DataFrame(rows), pd.DataFrame([drift])
    tables = [
        Table("layers", f"Mean cosine, drift and the cosine that is left without the mean, by layer, {model}", layers),
        Table("drift", f"Correlation over layers of the norm of the mean with the mean cosine, {model}", correlations),
    ]
    claims = [*_judge_cosines(model, options.modality(model), layers), *_judge_drift(model, layers, drift)]
    return Results(tables, claims, run_figures(options.run_folder(model), ["mean_cosine", "drift"]))


def _compute_centred_cosine(options: StudyOptions, model: str, layer: Any) -> float:
    """Mean cosine of the sampled rows less the mean of all."""
    summary = saved_summary(options.run_folder(model), layer)
    assert summary.sample is not None
    return get("mean_cosine")(summary.sample.values - summary.moments.mean)


def _judge_cosines(model: str, modality: str, layers: pd.DataFrame) -> list[Claim]:
    """Whether some layer is anisotropic, and for speech whether all are."""
    cosines = layers["mean_cosine"].to_numpy()
    worst, least = layers.iloc[int(cosines.argmax())], layers.iloc[int(cosines.argmin())]
    text = f"the highest mean cosine of {model} is {worst['mean_cosine']:.3f}, in layer {worst['layer']}"
    paper = "the paper finds some anisotropic layer in almost every transformer"
    found = bool(worst["mean_cosine"] > ALIKE)
    claims = [Claim.judge(found, f"{text}; {paper}.", "Figs. 1 to 4", worst["mean_cosine"])]
    if modality == "audio":
        text = f"the lowest mean cosine of {model} is {least['mean_cosine']:.3f}, in layer {least['layer']}"
        paper = "the paper finds at least 0.2 in every layer of every model of speech"
        found = bool(least["mean_cosine"] >= ALIKE)
        claims.append(Claim.judge(found, f"{text}; {paper}.", "Fig. 3", least["mean_cosine"], ALIKE))
    return claims


def _judge_drift(model: str, layers: pd.DataFrame, drift: dict[str, float]) -> list[Claim]:
    """Whether the mean cosine goes with drift."""
    rho = drift["spearman"]
    if not math.isfinite(rho):
        return []
    text = (
        f"drift and mean cosine of {model} have a rank correlation of {rho:.2f} over {len(layers)} layers "
        f"(p {drift['spearman_p']:.3g} by permutation, {drift['spearman_p_asymptotic']:.3g} by the paper's formula); "
        "layers are not independent, so that p describes and proves nothing."
    )
    return [Claim("note", text, "Fig. 5", rho)]


def _join_layers(options: StudyOptions) -> Results:
    """Figs. 1 to 4: the layers of all models together, by their depth from 0 to 1."""
    parts = []
    for model in options.names:
        frame = load_part(options.folder, f"{model} layers").tables[0].frame
        depth = [i / max(len(frame) - 1, 1) for i in range(len(frame))]
        parts.append(frame[["layer", "mean_cosine", "low", "high"]].assign(model=model, depth=depth))
    layers = pd.concat(parts, ignore_index=True)
    title = "Mean cosine of rows by depth, one line for each model."
    figure = make_figure("layers", title, partial(_draw_layers, layers))
    return Results([Table("layers", "Mean cosine by layer of all models", layers)], (), [figure])


def _draw_layers(layers: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for number, (model, of_model) in enumerate(layers.groupby("model", sort=False)):
        axes.plot(
            of_model["depth"],
            of_model["mean_cosine"],
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", ":")[number // len(COLOURS) % 3],
            marker=".",
            label=str(model).rpartition("/")[2],
        )
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.set_xlabel("depth")
    axes.set_ylabel("mean cosine")
    axes.legend()
