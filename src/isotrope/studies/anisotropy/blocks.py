"""Fresh and trained blocks under a common bias: the experiments of Section 4 of Godey et al. 2023."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from isotrope.errors import InputError, IsotropeError
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.models.load import Loaded
from isotrope.studies.anisotropy.biased_block import (
    LENGTH,
    NORMS,
    SEQUENCES,
    Inputs,
    apply_bias,
    count_scores,
    find_fixed_points,
)
from isotrope.studies.anisotropy.block_claims import judge_block, judge_fixed_points, judge_lengths, judge_signs
from isotrope.studies.anisotropy.block_figures import make_block_figures
from isotrope.studies.model_blocks import choose_blocks, list_sides, make_fresh_block, take_block
from isotrope.studies.model_class import find_class, is_trained
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, load_part
from isotrope.studies.transformer_block import TransformerBlock


class ExperimentSize(NamedTuple):
    """The size of an experiment: sequences, rows of each, norms of the bias, and draws."""

    sequences: int
    length: int
    norms: Sequence[float]
    draws: int


#: The sizes of a study, of a trained block's and of a quick one.
FRESH, TRAINED = ExperimentSize(SEQUENCES, LENGTH, NORMS, 5), ExperimentSize(4, 256, NORMS, 5)
QUICK = ExperimentSize(2, 128, (0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0), 3)

#: The norms whose scores are counted in histograms.
_COUNTED = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)

#: Initialisations and directions of the bias at which the sign of the mean score is looked at, and the bias there.
_DRAWS, _SIGN_NORM = 4, 20.0


def measure_fresh_block(options: StudyOptions, width: int) -> Results:
    """Figs. 6 to 10 for blocks at initialisation."""
    size = QUICK if options.quick else FRESH

    def make(draw: int) -> TransformerBlock:
        return replace(make_fresh_block(width, seed=options.seed + draw), name="fresh")

    return _measure_under_bias("fresh", [make], size, options.seed, width)


def measure_blocks(options: StudyOptions, model: str, numbers: Sequence[int] | None) -> Results:
    """The same for blocks of a model, and their fixed points compared with the lengths of the model's own rows.

    Args:
        options: of the study.
        model: its short name.
        numbers: of the blocks; None for the first and the middle one of each stack.
    """
    try:
        loaded = options.input(model).load(options.modality(model))
        if find_class(loaded) == "convolution":
            return Results.note(f"{model} is a network of convolutions, without blocks as the paper's.", "Section 4")
        blocks = [
            take_block(loaded, number, side, find_table(options, model, loaded, side))
            for side in list_sides(loaded)
            for number in numbers or choose_blocks(loaded, side)
        ]
    except InputError as error:
        return Results.note(f"no block of {model} was put under a bias: {error}", "Section 4")
    makers = [lambda _, block=block: block for block in blocks]
    results = _measure_under_bias("trained", makers, QUICK if options.quick else TRAINED, options.seed, None)
    claims = list(results.claims)
    if is_trained(loaded.model):
        lengths = load_part(options.folder, f"{model} layers").tables[0].frame["rms_norm"].astype(float).tolist()
        claims += judge_lengths(model, results.tables[1].frame, lengths)
    else:
        text = f"{model}: all norms have their initial weights; the paper compares N* with a trained model."
        claims.append(Claim("note", text, "Section 4.2"))
    kind = find_class(loaded)
    return results._replace(claims=[replace(claim, model=model, model_class=kind) for claim in claims])


def find_table(options: StudyOptions, model: str, loaded: Loaded, side: str) -> Any:
    """The rows that inputs are drawn from: of text the input embeddings, else sampled rows of the first layer.

    The first layer of images are patch embeddings, that of sounds frames, and that of a decoder of speech tokens.
    """
    import torch

    if loaded.modality == "text":
        return None
    names = load_part(options.folder, f"{model} layers").tables[0].frame["layer"].astype(str).tolist()
    first = next((number for number, name in enumerate(names) if name.startswith(side)), 0)
    try:
        sample = saved_summary(options.run_folder(model), first).sample
    except IsotropeError:
        sample = None
    if sample is None:
        raise InputError(f"no rows of the first layer of {model} were kept, so that none can be given to its blocks.")
    return torch.from_numpy(sample.values).float().to(loaded.device)


def _measure_under_bias(
    name: str, makers: Sequence[Callable[[int], TransformerBlock]], size: ExperimentSize, seed: int, width: int | None
) -> Results:
    """Measure blocks given sequences of raw embeddings with a bias.

    Args:
        name: of the tables.
        makers: for each block, what makes it for a draw.
        size: the size of the experiment.
        seed: of the first draw.
        width: the width of fresh blocks, None for trained ones.
    """
    tables: dict[str, list[pd.DataFrame]] = {"block": [], "fixed_points": [], "scores": []}
    claims, figures = [], []
    for number, make in enumerate(makers):
        rows, points, scores = _measure_draws(make, size, seed)
        for kind, frame in zip(tables, (rows, points, scores), strict=True):
            tables[kind].append(frame)
        claims += judge_block(rows, width)
        figures += make_block_figures(f"{name}_block_{number}", str(rows["block"].iloc[0]), rows, scores)
    joined = {kind: pd.concat(frames, ignore_index=True) for kind, frames in tables.items()}
    claims += judge_fixed_points(joined["fixed_points"], width)
    means = joined["block"].drop(columns="seed").groupby(["block", "bias_norm"], sort=False).mean().reset_index()
    given = f"{size.sequences} sequences of {size.length} rows and a common bias, mean over {size.draws} draws"
    titles = {
        f"{name}_block": (f"Input, output, scores, queries, keys and softmax of a block given {given}", means),
        f"{name}_fixed_points": (
            "Norm of the bias at which the block leaves the norm as it is, by both readings",
            joined["fixed_points"],
        ),
        f"{name}_draws": ("The same quantities for each draw of weights, rows and direction", joined["block"]),
        f"{name}_scores": ("Number of scores before the softmax in each bin, first draw", joined["scores"]),
    }
    return Results([Table(key, title, frame) for key, (title, frame) in titles.items()], claims, figures)


def _measure_draws(
    make: Callable[[int], TransformerBlock], size: ExperimentSize, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Quantities by norm of the bias, fixed points and, for the first draw, histograms of scores."""
    rows, points, scores = [], [], []
    for draw in range(size.draws):
        block = make(draw)
        inputs = Inputs.draw(block, size.sequences, size.length, seed + draw, seed + draw)
        which = {"block": block.name, "seed": seed + draw}
        records = apply_bias(block, inputs, size.norms)
        rows += [which | record for record in records]
        points.append(which | find_fixed_points(block, inputs, records))
        if draw == 0:
            norms = [norm for norm in size.norms if norm in _COUNTED]
            scores = [{"block": block.name} | bin_ for bin_ in count_scores(block, inputs, norms)]
    return pd.DataFrame(rows), pd.DataFrame(points), pd.DataFrame(scores)


def measure_signs(options: StudyOptions, width: int) -> Results:
    """How the sign of the mean score depends on the initialisation and on the direction of the bias."""
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
    return Results([Table("signs", title, frame)], [judge_signs(frame["score_mean"].tolist(), _SIGN_NORM)])
