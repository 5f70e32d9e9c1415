"""Self-attention that is sharp without drift: the revision that the conclusion of Godey et al. 2023 asks for.

The paper sees attention become more categorical as its inputs drift, and proposes to revise self-attention so that it
can be sharp while representations stay as they are. Three variants of a fresh block are compared with it at each norm
of the bias: a temperature below 1, scores without the term bᵀAx through which the bias acts, and scores whose mean over
queries is removed for each key, which takes the same term out without knowledge of the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.log_axis import use_log_axis
from isotrope.drawing.style import COLOURS, PAGE_WIDTH
from isotrope.measures import get
from isotrope.studies.anisotropy.biased_block import Inputs, find_bias_term, measure_sharpness
from isotrope.studies.anisotropy.block_claims import describe_interval
from isotrope.studies.figures import make_figure
from isotrope.studies.model_blocks import make_fresh_block
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import ScoreChange, TransformerBlock
from isotrope.studies.verdict import seeds_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Temperatures: scores, which are about 1e-4 in a fresh block, are divided by them.
TEMPERATURES = (1 / 16, 1 / 256, 1 / 1024)

#: Sequences, rows of each and draws, and norms of the bias.
_SIZE, _QUICK_SIZE, _NORMS = (4, 256, 5), (2, 64, 3), (0.0, 5.0, 20.0, 40.0)

#: The block as it is, and the variant that notes are about.
PLAIN, SHARPEST = "plain", "temperature 1/1024"


def divide_scores(temperature: float) -> ScoreChange:
    """Divide scores by a temperature, which makes the softmax sharper below 1."""
    return lambda scores: scores / temperature


def centre_keys(scores: Any) -> Any:
    """Remove the mean over queries of the scores of each key, (heads, t, t)."""
    return scores - scores.mean(dim=-2, keepdim=True)


def list_variants(block: TransformerBlock, rows: Any, bias: Any) -> dict[str, ScoreChange | None]:
    """The variants of attention by their names; None for the block as it is.

    Args:
        block: a fresh block.
        rows: of one sequence, without the bias, (t, d).
        bias: (d,).
    """
    term = find_bias_term(block, rows, bias)
    changes: dict[str, ScoreChange | None] = {PLAIN: None}
    changes |= {f"temperature 1/{round(1 / t)}": divide_scores(t) for t in TEMPERATURES}
    return changes | {"without bᵀAx": lambda scores: scores - term, "centred keys": centre_keys}


def compare_variants(block: TransformerBlock, inputs: Inputs, norm: float) -> list[dict[str, Any]]:
    """Sharpness of the softmax and mean cosine of the output of each variant under one bias."""
    bias = norm * inputs.direction
    seen: dict[str, list[Any]] = {}
    for rows in inputs.rows:
        for name, change in list_variants(block, rows, bias).items():
            seen.setdefault(name, []).append(block(rows + bias, change))
    records = []
    for name, passes in seen.items():
        weights = pd.DataFrame([measure_sharpness(one.softmax, one.scores) for one in passes]).mean()
        output = np.concatenate([one.output.numpy() for one in passes])
        chosen = {key: float(weights[key]) for key in ("softmax_max", "softmax_sequence_max")}
        records.append({"variant": name, "bias_norm": norm} | chosen | {"output_cosine": get("mean_cosine")(output)})
    return records


def measure_variants(options: StudyOptions, width: int) -> Results:
    """Compare variants of self-attention in fresh blocks."""
    sequences, length, draws = _QUICK_SIZE if options.quick else _SIZE
    rows = []
    for seed in range(options.seed, options.seed + draws):
        block = make_fresh_block(width, seed=seed)
        inputs = Inputs.draw(block, sequences, length, seed, seed)
        rows += [{"seed": seed} | record for norm in _NORMS for record in compare_variants(block, inputs, norm)]
    frame = pd.DataFrame(rows)
    means = frame.drop(columns="seed").groupby(["variant", "bias_norm"], sort=False).mean().reset_index()
    title = "Largest weight of the softmax and mean cosine of the output by variant of attention and norm of the bias"
    figure = make_figure("variants", f"{title}.", partial(_draw_variants, means), width=PAGE_WIDTH, height=2.8)
    tables = [Table("variants", title, means), Table("variants_draws", f"{title}, each draw", frame)]
    return Results(tables, describe_variants(frame), [figure])


def describe_variants(frame: pd.DataFrame) -> list[Claim]:
    """How sharp a temperature makes attention without a bias, and how alike the rows, beside what drift does.

    These are notes: the temperature was chosen to be low enough, so that there is nothing to test.

    Args:
        frame: a row for each draw, variant and norm of the bias.
    """
    last = float(frame["bias_norm"].max())
    sharp, drifted = _select(frame, SHARPEST, 0.0), _select(frame, PLAIN, last)
    words = f"a {SHARPEST} without a bias"
    gain = np.log(sharp["softmax_max"].to_numpy() / drifted["softmax_max"].to_numpy())
    less = drifted["output_cosine"].to_numpy() - sharp["output_cosine"].to_numpy()
    paper = f"under a bias of {last:g}; the paper's hypothesis: attention can be sharp without drift"
    return [
        _make_note(gain, f"{words} makes the largest weight {{}} times that {paper}", np.exp),
        _make_note(less, f"{words} gives outputs whose mean cosine is {{}} below that {paper}"),
    ]


def _select(frame: pd.DataFrame, variant: str, norm: float) -> pd.DataFrame:
    rows: pd.DataFrame = frame[(frame["variant"] == variant) & (frame["bias_norm"] == norm)].sort_values("seed")
    return rows


def _make_note(values: Any, text: str, shown: Callable[[float], float] = float) -> Claim:
    ends = seeds_interval(values)
    mean = float(shown(float(np.mean(values))))
    evidence = describe_interval(float(shown(ends[0])), float(shown(ends[1])), len(values))
    return Claim("note", f"{text.format(f'{mean:.3f}')}.", "Section 5", mean, evidence=evidence)


def _draw_variants(means: pd.DataFrame, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, column, label in zip(
        panels, ("softmax_max", "output_cosine"), ("largest weight of a position", "mean cosine of output"), strict=True
    ):
        for number, (name, rows) in enumerate(means.groupby("variant", sort=False)):
            named = {"label": str(name)} if axes is panels[0] else {}
            axes.plot(rows["bias_norm"], rows[column], marker=".", color=COLOURS[number % len(COLOURS)], **named)
        axes.set_xlabel("norm of the bias")
        axes.set_ylabel(label)
    use_log_axis(panels[0])
    figure.legend(loc="outside lower center", ncols=3)
