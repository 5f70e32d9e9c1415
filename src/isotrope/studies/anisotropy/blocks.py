"""Fresh and trained blocks under a common bias, with the claims and figures of Section 4 of Godey et al. 2023."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from isotrope.drawing.style import BLUE, ORANGE, PAGE_WIDTH
from isotrope.errors import InputError
from isotrope.sources.models.modality import WORDS
from isotrope.studies.anisotropy.biased_block import LENGTH, NORMS, SEQUENCES, Inputs, apply_bias, find_fixed_points
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, load_part
from isotrope.studies.transformer_block import TransformerBlock, count_blocks, make_fresh_block, take_block

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Sequences, rows of each and norms of the bias of a quick study, and of a trained block's.
_QUICK = (2, 128, (0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0))
_TRAINED = (4, 256, NORMS)

#: Initialisations and directions of the bias at which the sign of the mean score is looked at, and the bias there.
_DRAWS, _SIGN_NORM = 4, 20.0

#: Standard deviation of BERT's initial weights.
INITIAL = 0.02

#: How near the fixed point and the output norms of a fresh block must be to √d.
_NEAR = 0.1

#: How much the largest weight of a softmax must grow to be called sharper.
_SHARPER = 1.002

#: What a curve that has become flat may fall by, as a share of its height.
_FLAT = 1e-3

#: The mean cosine from which rows are called anisotropic.
ALIKE = 0.2

#: The panels: title, and columns with their labels.
_PANELS: tuple[tuple[str, dict[str, str]], ...] = (
    ("mean cosine", {"input_cosine": "input", "output_cosine": "output"}),
    (
        "norm",
        {
            "input_norm": "input, mean of norms",
            "output_norm": "output, mean of norms",
            "input_mean_norm": "input, norm of mean",
            "output_mean_norm": "output, norm of mean",
        },
    ),
    ("score before the softmax", {"score_mean": "mean", "score_deviation": "deviation"}),
    ("queries and keys, norm", {"query_norm": "queries", "key_norm": "keys"}),
    ("queries and keys, cosine", {"query_cosine": "queries", "key_cosine": "keys"}),
    (
        "largest weight",
        {
            "softmax_max": "of a position",
            "no_bAx_max": "the same without bᵀAx",
            "softmax_sequence_max": "of a sequence",
            "no_bAx_sequence_max": "the same without bᵀAx",
        },
    ),
)


def measure_fresh_block(options: StudyOptions, width: int) -> Results:
    """Figs. 6 to 10 for a block at initialisation."""
    shape = _QUICK if options.quick else (SEQUENCES, LENGTH, NORMS)
    return _measure_under_bias("fresh", options, [make_fresh_block(width, seed=options.seed)], shape, width)


def measure_blocks(options: StudyOptions, model: str, numbers: Sequence[int] | None) -> Results:
    """The same for blocks of a model, and their fixed points compared with the lengths of the model's own rows."""
    if (modality := options.modality(model)) != "text":
        text = (
            f"{model} reads {WORDS[modality]}: rows for a block come from a table of input embeddings, which text has."
        )
        return Results.note(text, "Section 4")
    try:
        loaded = options.input(model).load()
        blocks = [take_block(loaded, n) for n in numbers or sorted({0, count_blocks(loaded) // 2})]
    except InputError as error:
        return Results.note(error, "Section 4")
    results = _measure_under_bias("trained", options, blocks, _QUICK if options.quick else _TRAINED, None)
    lengths = load_part(options.folder, f"{model} layers").tables[0].frame["rms_norm"].astype(float)
    return results._replace(claims=[*results.claims, *_judge_lengths(model, results.tables[1].frame, lengths)])


def _measure_under_bias(
    name: str,
    options: StudyOptions,
    blocks: Sequence[TransformerBlock],
    shape: tuple[int, int, Sequence[float]],
    width: int | None,
) -> Results:
    """Measure blocks given sequences of raw embeddings with a bias.

    Args:
        name: of the tables.
        options: of the study.
        blocks: what to measure.
        shape: sequences, rows of each, and norms of the bias.
        width: the width of a fresh block, None for a trained one.
    """
    sequences, length, norms = shape
    rows, points, claims, figures = [], [], [], []
    for number, block in enumerate(blocks):
        inputs = Inputs.draw(block, sequences, length, options.seed, options.seed)
        records = [{"block": block.name} | record for record in apply_bias(block, inputs, norms)]
        rows += records
        points.append({"block": block.name} | find_fixed_points(block, inputs, records))
        claims += judge_block(pd.DataFrame(records), width)
        what = "cosines and norms, scores, queries and keys, and weights of the softmax by norm of the bias"
        draw = partial(_draw_block, pd.DataFrame(records))
        figures.append(
            make_figure(f"{name}_block_{number}", f"{block.name}: {what}.", draw, width=PAGE_WIDTH, height=4.2)
        )
    given = f"{sequences} sequences of {length} rows of the raw embeddings and a common bias"
    title = f"Input, output, scores, queries, keys and softmax of a block given {given}"
    fixed = pd.DataFrame(points)
    title_of_fixed = "Norm of the bias at which the block leaves the norm as it is, by both readings"
    tables = [
        Table(f"{name}_block", title, pd.DataFrame(rows)),
        Table(f"{name}_fixed_points", title_of_fixed, fixed),
    ]
    return Results(tables, [*claims, *_judge_fixed_points(fixed, width)], figures)


def _draw_block(frame: pd.DataFrame, figure: Figure) -> None:
    panels = figure.subplots(2, 3).flat
    for axes, (title, columns) in zip(panels, _PANELS, strict=True):
        for number, (column, label) in enumerate(columns.items()):
            if column in frame and frame[column].notna().any():
                how = {"color": (BLUE, ORANGE)[number % 2], "linestyle": ("-", "--")[number // 2], "marker": "."}
                axes.plot(frame["bias_norm"], frame[column].astype(float), label=label, **how)
        axes.set_title(title)
        axes.set_xlabel("norm of the bias")
        if axes.lines:
            axes.legend()


def judge_block(frame: pd.DataFrame, width: int | None) -> list[Claim]:
    """Norms, cosines and sharpness of one block under a bias.

    Args:
        frame: a row for each norm of the bias.
        width: the width of a fresh block, None for a trained one.
    """
    name = str(frame["block"].iloc[0])
    claims = []
    if width is not None:
        root = math.sqrt(width)
        far = float((frame["output_norm"] - root).abs().max())
        low, high = frame["output_norm"].min(), frame["output_norm"].max()
        text = f"{name}: the mean output norm is {low:.3f} to {high:.3f} whatever the bias; √d = {root:.3f}"
        claims.append(Claim.judge(far <= _NEAR, f"{text}.", "Fig. 6b", far, 0.0))
        square = frame["bias_norm"] ** 2
        expected = square / (square + width * INITIAL**2)
        off = float((frame["input_cosine"] - expected).abs().max())
        text = f"{name}: the input cosine is N²/(N² + {width * INITIAL**2:.4f}) to {off:.1e}"
        claims.append(Claim.judge(off < 0.01, f"{text}.", "Fig. 6a", off, 0.0))
    above = frame["output_cosine"] > frame["input_cosine"]
    levels = ", ".join(f"{n:g}" for n in frame[~above]["bias_norm"])
    text = f"{name}: the output cosine is above the input cosine at {above.sum()} of {len(frame)} norms of the bias"
    text += f", not at {levels}" if levels else ""
    paper = "the paper: slightly higher at every level"
    claims.append(Claim.judge(bool(above.all()), f"{text}; {paper}.", "Fig. 6a"))
    return claims + _judge_growth(name, frame) + _judge_sharpness(name, frame)


def _judge_growth(name: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether the mean output, queries and keys grow with the bias, and are alike without one."""
    claims = []
    for column, what, where in (
        ("output_mean_norm", "the norm of the mean output", "Fig. 6b"),
        ("query_norm", "the mean norm of queries", "Fig. 8"),
        ("key_norm", "the mean norm of keys", "Fig. 8"),
    ):
        values = frame[column].astype(float)
        if values.isna().any():
            continue
        grows = bool((values.diff().dropna() >= -_FLAT * values.max()).all() and values.iloc[-1] > values.iloc[0])
        text = (
            f"{name}: {what} goes from {values.iloc[0]:.3g} to {values.iloc[-1]:.3g}; the paper: it grows with the bias"
        )
        claims.append(Claim.judge(grows, f"{text}.", where))
    first = frame.iloc[0]
    both = [float(first[f"{kind}_cosine"]) for kind in ("query", "key")]
    if first["bias_norm"] == 0 and all(map(math.isfinite, both)):
        text = f"{name}: without a bias queries have a mean cosine of {both[0]:.3f} and keys of {both[1]:.3f}"
        alike = min(both) > ALIKE
        paper = "the paper: anisotropic even then"
        claims.append(Claim.judge(alike, f"{text}; {paper}.", "Fig. 8", min(both)))
    return claims


def _judge_sharpness(name: str, frame: pd.DataFrame) -> list[Claim]:
    """How much sharper the softmax becomes, with and without the term bᵀAx."""
    first, last = frame.iloc[0], frame.iloc[-1]
    if not math.isfinite(first.get("softmax_max", math.nan)):
        return []
    grown = float(last["softmax_max"] / first["softmax_max"])
    text = (
        f"{name}: the largest weight of a position grows {grown:.3f} times from no bias to one of {last['bias_norm']:g}"
    )
    claims = [Claim.judge(grown > _SHARPER, f"{text}; the paper: sharper.", "Fig. 9", grown)]
    if math.isfinite(last["no_bAx_max"]):
        without = float(last["no_bAx_max"] / first["softmax_max"])
        text = (
            f"{name}: without the term bᵀAx of the scores it grows {without:.4f} times, so that this term is all of it"
        )
        if abs(without - 1) > 0.1 * abs(grown - 1) + 1e-3:
            text = f"{name}: without the term bᵀAx of the scores it still changes {without:.4f} times"
        claims.append(Claim("note", f"{text}.", "Fig. 9", without, 1.0))
    return claims


def _judge_fixed_points(fixed: pd.DataFrame, width: int | None) -> list[Claim]:
    """Where blocks leave the norm as it is."""
    claims = []
    for row in fixed.to_dict("records"):
        norms, means = row["mean of norms"], row["norm of mean"]
        text = f"{row['block']}: N* is {norms:.2f} by the mean of norms and {means:.2f} by the norm of the mean"
        if width is None:
            missing = " (nan: they never meet within the norms tried)" if norms != norms or means != means else ""
            claims.append(Claim("note", f"{text}{missing}.", "Section 4.2", norms))
            continue
        expected = math.sqrt(width * (1 - INITIAL**2))
        near = abs(norms - expected) <= _NEAR
        paper = f"expected √(d(1 − {INITIAL}²)) = {expected:.2f} for a fresh block"
        claims.append(Claim.judge(near, f"{text}; {paper}.", "Section 4.2", norms, expected))
    return claims


def _judge_lengths(model: str, fixed: pd.DataFrame, lengths: pd.Series[float]) -> list[Claim]:
    """Whether fixed points are within ten times the lengths of the model's rows in each layer."""
    low, high = float(lengths.min()), float(lengths.max())
    claims = []
    for row in fixed.to_dict("records"):
        point = float(row["mean of norms"])
        if not math.isfinite(point):
            continue
        text = (
            f"{row['block']}: N* is {point:.2f}, rows of the layers of {model} are {low:.2f} to {high:.2f} long "
            "(root mean square); the paper: of one order of magnitude."
        )
        near = low / 10 <= point <= 10 * high
        claims.append(Claim.judge(near, text, "Section 4.2", point))
    return claims


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
    up = int((frame["score_mean"] > 0).sum())
    text = (
        f"under a bias the mean score is positive in {up} of {len(frame)} draws of initialisation and direction; "
        "the paper saw both signs."
    )
    return Results([Table("signs", title, frame)], [Claim.judge(0 < up < len(frame), text, "Fig. 7")])
