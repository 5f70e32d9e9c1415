"""Whether the token matrix of a sequence has full rank in every layer: Sections 1 and 3 of Yan et al. 2022."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from isotrope.compute.threads import limit_threads
from isotrope.runs.saved_statistics import saved_summary
from isotrope.statistics import Sample
from isotrope.studies.figures import make_layer_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.rank_bound import iterate_sequences
from isotrope.studies.verdict import LEVEL, judge_all, judge_interval

#: "Rank collapse rarely occurs" (Section 3): in at most one sequence of twenty.
_RARELY = 0.05


def measure_rank(options: StudyOptions, model: str, measures: str) -> Results:
    """The share of sequences whose token matrix has full rank, by layer; measures: those of the scan of the layers."""
    findings = options.scan(model, options.source(model), measures)
    rows = []
    for layer in findings.layers:
        sample = saved_summary(options.run_folder(model), layer).sample
        assert sample is not None
        rows.append({"layer": layer} | compute_full_rank(sample, LEVEL / len(findings.layers)))
    frame = pd.DataFrame(rows)
    title = f"Share of sequences of full rank with its interval, and the smallest singular value / largest, {model}"
    caption = "Smallest singular value of a sequence's token matrix over its largest, by layer."
    lines = frame.melt(["layer"], ["median smallest", "least smallest"], "over sequences", "smallest")
    lines["over sequences"] = lines["over sequences"].str.removesuffix(" smallest")
    figure = make_layer_figure("rank", caption, lines, "over sequences", "smallest", "smallest σ / largest")
    return Results([Table("rank", title, frame)], judge_full_rank(model, frame), [figure])


def compute_full_rank(sample: Sample, level: float = LEVEL) -> dict[str, Any]:
    """Count the sequences whose token matrix, T × d, has the rank min(T, d).

    A singular value counts as zero at or below max(T, d)·ε·σ₁, ε the precision of the sampled rows, as in numpy's
    `matrix_rank`.

    Args:
        sample: sampled rows of one layer, in whole sequences.
        level: of the interval, which holds the share of all sequences with a probability of 1 − level.

    Returns:
        `sequences` of two tokens or more; the share of `full rank` with the ends `low` and `high` of its interval
        (Clopper and Pearson 1934); `median smallest` and `least smallest`, over sequences, of σ_min/σ₁.
    """
    epsilon = float(np.finfo(np.asarray(sample.values).dtype).eps)
    smallest, full = [], []
    with limit_threads():
        for rows in iterate_sequences(sample):
            if len(rows) > 1:
                singular = np.linalg.svd(rows, compute_uv=False)
                smallest.append(float(singular[-1] / singular[0]))
                full.append(smallest[-1] > max(rows.shape) * epsilon)
    if not full:
        names = ("full rank", "low", "high", "median smallest", "least smallest")
        return {"sequences": 0} | dict.fromkeys(names, float("nan"))
    ends = stats.binomtest(sum(full), len(full)).proportion_ci(1 - level, method="exact")
    return {
        "sequences": len(full),
        "full rank": float(np.mean(full)),
        "low": float(ends.low),
        "high": float(ends.high),
        "median smallest": float(np.median(smallest)),
        "least smallest": min(smallest),
    }


def judge_full_rank(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether token matrices of nearly all sequences have full rank in all layers.

    Args:
        model: its name.
        frame: a row for each layer, as `compute_full_rank` returns, with intervals corrected for their number.
    """
    known = frame.dropna(subset=["full rank"])
    if known.empty:
        return []
    worst = known.to_dict("records")[int(known["full rank"].argmin())]
    outcome = judge_all([judge_interval(row.low, row.high, border=1 - _RARELY) for row in known.itertuples()])
    text = (
        f"{worst['full rank']:.0%} of the sequences have full rank in layer {worst['layer']} of {model}, and at least "
        "as many in every other layer; the paper: no singular value is zero, rank collapse rarely occurs (read as: in "
        f"at most {_RARELY:.0%})."
    )
    evidence = f"interval {worst['low']:.3f} to {worst['high']:.3f}, corrected for {len(known)} layers"
    return [Claim(outcome, text, "Sections 1 and 3", float(worst["full rank"]), 1.0, evidence, model)]
