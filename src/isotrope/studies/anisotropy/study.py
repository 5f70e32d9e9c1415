"""Anisotropy of layers, drift, and blocks under a common bias: the protocol of Godey et al. 2023."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.models.modality import WORDS
from isotrope.studies.anisotropy.biased_block import LENGTH, NORMS, SEQUENCES, Inputs, apply_bias, find_fixed_points
from isotrope.studies.anisotropy.claims import (
    judge_block,
    judge_drift,
    judge_fixed_points,
    judge_lengths,
    judge_signs,
)
from isotrope.studies.anisotropy.figures import make_block_figures, make_layers_figure
from isotrope.studies.figures import run_figures
from isotrope.studies.options import StudyOptions, layer_readings
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Experiment, Results, load_part, run_study
from isotrope.studies.transformer_block import (
    TransformerBlock,
    check_block_width,
    count_blocks,
    make_fresh_block,
    take_block,
)

PAPER = "Godey, de la Clergerie and Sagot 2023, Is Anisotropy Inherent to Transformers?"

_BY_LAYER = ("mean_cosine", "drift_norm", "drift_share", "mean_squared_norm")
_DRIFT = tuple(
    f"drift_correlation_{kind}{end}" for kind in ("spearman", "pearson") for end in ("", "_p", "_p_asymptotic")
)

#: Sequences, rows of each and norms of the bias of a quick study, and of a trained block's.
_QUICK = (2, 128, (0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0))
_TRAINED = (4, 256, NORMS)

#: Initialisations and directions of the bias at which the sign of the mean score is looked at, and the bias there.
_DRAWS, _SIGN_NORM = 4, 20.0


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
    experiments = [Experiment(f"{model} layers", partial(_measure_layers, options, model)) for model in options.names]
    experiments.append(Experiment("all layers", partial(_join_layers, options)))
    experiments.append(Experiment("fresh block", partial(_measure_fresh_block, options, width)))
    experiments.append(Experiment("fresh block signs", partial(_measure_signs, options, width)))
    for model in options.names:
        experiments.append(Experiment(f"{model} blocks", partial(_measure_blocks, options, model, blocks)))
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
    import pandas as pd

    findings = options.scan(model, options.source(model), ",".join((*_BY_LAYER, *_DRIFT)))
    rows = []
    for layer in findings.layers:
        by = layer_readings(findings, layer)
        cosine = by["mean_cosine"]
        row: dict[str, Any] = {"layer": findings.layer_names.get(str(layer), str(layer))}
        row |= {"mean_cosine": cosine.value, "low": cosine.low, "high": cosine.high}
        row |= {"drift_norm": by["drift_norm"].value, "drift_share": by["drift_share"].value}
        row["rms_norm"] = math.sqrt(by["mean_squared_norm"].value)
        rows.append(row | {"centred_mean_cosine": _compute_centred_cosine(options, model, layer)})
    over_layers = {r.measure: r.value for r in findings.readings if r.layer is None}
    drift = pd.DataFrame([{name.removeprefix("drift_correlation_"): over_layers[name] for name in _DRIFT}])
    frame = pd.DataFrame(rows)
    tables = [
        Table("layers", f"Mean cosine, drift and the cosine that is left without the mean, by layer, {model}", frame),
        Table("drift", f"Correlation over layers of the norm of the mean with the mean cosine, {model}", drift),
    ]
    return Results(
        tables,
        judge_drift(model, options.modality(model), frame, drift),
        run_figures(options.run_folder(model), ["mean_cosine", "drift"]),
    )


def _join_layers(options: StudyOptions) -> Results:
    """Figs. 1 to 4: the layers of all models together, by their depth from 0 to 1."""
    import pandas as pd

    parts = []
    for model in options.names:
        frame = load_part(options.folder, f"{model} layers").tables[0].frame
        depth = [i / max(len(frame) - 1, 1) for i in range(len(frame))]
        parts.append(frame[["layer", "mean_cosine", "low", "high"]].assign(model=model, depth=depth))
    every = pd.concat(parts, ignore_index=True)
    return Results([Table("layers", "Mean cosine by layer of all models", every)], (), [make_layers_figure(every)])


def _compute_centred_cosine(options: StudyOptions, model: str, layer: Any) -> float:
    """Mean cosine of the sampled rows less the mean of all."""
    summary = saved_summary(options.run_folder(model), layer)
    assert summary.sample is not None
    return get("mean_cosine")(summary.sample.values - summary.moments.mean)


def _measure_fresh_block(options: StudyOptions, width: int) -> Results:
    """Figs. 6 to 10 for a block at initialisation."""
    sequences, length, norms = _QUICK if options.quick else (SEQUENCES, LENGTH, NORMS)
    block = make_fresh_block(width, seed=options.seed)
    return _measure_under_bias("fresh", options, [block], sequences, length, norms, width)


def _measure_blocks(options: StudyOptions, model: str, numbers: Sequence[int] | None) -> Results:
    """The same for blocks of a model, and their fixed points compared with the lengths of the model's own rows."""
    sequences, length, norms = _QUICK if options.quick else _TRAINED
    if (modality := options.modality(model)) != "text":
        text = (
            f"{model} reads {WORDS[modality]}: rows for a block come from a table of input embeddings, which text has."
        )
        return Results((), [Claim("note", text, "Section 4")])
    try:
        loaded = options.input(model).load()
        chosen = numbers or sorted({0, count_blocks(loaded) // 2})
        blocks = [take_block(loaded, n) for n in chosen]
    except InputError as error:
        return Results((), [Claim("note", str(error), "Section 4")])
    results = _measure_under_bias("trained", options, blocks, sequences, length, norms, None)
    lengths = load_part(options.folder, f"{model} layers").tables[0].frame["rms_norm"].astype(float)
    return results._replace(claims=[*results.claims, *judge_lengths(model, results.tables[1].frame, lengths)])


def _measure_under_bias(
    name: str,
    options: StudyOptions,
    blocks: Sequence[TransformerBlock],
    sequences: int,
    length: int,
    norms: Sequence[float],
    width: int | None,
) -> Results:
    import pandas as pd

    rows, points = [], []
    for block in blocks:
        inputs = Inputs.draw(block, sequences, length, options.seed, options.seed)
        records = apply_bias(block, inputs, norms)
        rows += [{"block": block.name} | record for record in records]
        points.append({"block": block.name} | find_fixed_points(block, inputs, records))
    frame, fixed = pd.DataFrame(rows), pd.DataFrame(points)
    shape = f"{sequences} sequences of {length} rows of the raw embeddings and a common bias"
    tables = [
        Table(f"{name}_block", f"Input, output, scores, queries, keys and softmax of a block given {shape}", frame),
        Table(
            f"{name}_fixed_points",
            "Norm of the bias at which the block leaves the norm as it is, by both readings",
            fixed,
        ),
    ]
    claims = [claim for block in blocks for claim in judge_block(frame[frame["block"] == block.name], width)]
    return Results(tables, [*claims, *judge_fixed_points(fixed, width)], make_block_figures(f"{name}_block", frame))


def _measure_signs(options: StudyOptions, width: int) -> Results:
    """How the sign of the mean score depends on the initialisation and on the direction of the bias."""
    import pandas as pd

    sequences, length = (1, 64) if options.quick else (2, 256)
    rows = []
    for draw in range(_DRAWS):
        block = make_fresh_block(width, seed=options.seed + draw)
        for direction in range(_DRAWS if not options.quick else 2):
            inputs = Inputs.draw(block, sequences, length, options.seed, direction)
            (record,) = apply_bias(block, inputs, [_SIGN_NORM])
            chosen = {k: record[k] for k in ("score_mean", "score_deviation", "output_norm", "softmax_max")}
            rows.append({"initialisation": options.seed + draw, "direction": direction} | chosen)
    frame = pd.DataFrame(rows)
    title = f"Mean score of fresh blocks under a bias of {_SIGN_NORM:g}, by initialisation and direction"
    return Results([Table("signs", title, frame)], judge_signs(frame))
