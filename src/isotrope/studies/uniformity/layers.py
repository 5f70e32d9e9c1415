"""Spectra and uniformity of tokens by layer, and what Yan et al. 2022 say of them (Section 3, Figs. 1 and 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from isotrope.studies.figures import run_figures
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Table, depth_correlation, rank_correlation
from isotrope.studies.runner import Results
from isotrope.studies.stacks import split_stacks
from isotrope.studies.uniformity.published import find_median
from isotrope.studies.verdict import LEVEL, depth_interval, format_interval, judge_interval, judge_together

BY_LAYER = (
    "sequence_spectral_skewness",
    "sequence_spectral_median",
    "sequence_vanished_dimensions",
    "sequence_uniformity",
    "cls_uniformity",
    "spectral_skewness",
    "spectral_median",
    "explained_variance_1",
    "token_uniformity",
    "sequence_rank_one_residual",
    "rank_one_residual",
    "mean_cosine",
)

#: Measures whose intervals are in the table, with the direction in which Fig. 2 has them go with depth.
_WITH_DEPTH = {
    "sequence_spectral_skewness": 1,
    "sequence_spectral_median": -1,
    "sequence_uniformity": 1,
    "cls_uniformity": 1,
}

#: Figures of a run that correspond to those of the paper.
_RUN_FIGURES = ("sequence-spectra", "spectrum-histograms", "uniformity", "softdecay-spectra")

#: Draws of the layers' values.
_DRAWS = 2_000


def measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 1 and 2: spectra and uniformity by layer."""
    findings = options.scan(model, options.source(model), ",".join(BY_LAYER))
    rows = []
    for number, (layer, by) in enumerate(iterate_layers(findings)):
        row: dict[str, Any] = {"layer": layer} | {name: by[name].value for name in BY_LAYER}
        row["sequence_spectral_median_printed"] = find_median(model, number)
        for name in (*_WITH_DEPTH, "token_uniformity"):
            row |= {f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    tables = [Table("layers", f"Spectra and uniformity of tokens and [CLS] by layer, {model}", frame)]
    if "sequence_cdf" in findings.tables:
        title = f"CDF of singular values of sequences, each divided by its largest, by layer, {model}"
        tables.append(Table("cdf", title, findings.tables["sequence_cdf"], shown=False))
    claims = list[Claim]()
    for name, stack in split_stacks(frame, findings.layer_names, model).items():
        claims += [*judge_depth(name, stack), *judge_last_layer(name, stack), *judge_skewness(name, stack)]
    return Results(tables, claims, run_figures(options.run_folder(model), _RUN_FIGURES))


def _interval(frame: pd.DataFrame, name: str) -> tuple[Any, Any, Any]:
    """The values of a measure in all layers with their 95 % intervals."""
    return frame[name].astype(float), frame[f"{name}_low"].astype(float), frame[f"{name}_high"].astype(float)


def judge_depth(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether skewness and uniformity rise with depth, and the median singular value falls (Fig. 2).

    Both must say so: the rank correlation with depth, and the last layer less the first.

    Args:
        model: its name.
        frame: a row for each layer, with the measures and the ends of their intervals.
    """
    claims = []
    for name, sign in _WITH_DEPTH.items():
        values, low, high = _interval(frame, name)
        rho = depth_correlation(values)
        if math.isnan(rho):
            continue
        ends = depth_interval(values.tolist(), low.tolist(), high.tolist())
        text = (
            f"{name} of {model} goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth "
            f"{rho:.2f}; the paper: it {'rises' if sign > 0 else 'falls'} in BERT."
        )
        change = _subtract(values, low, high, last=-1, first=0)
        outcome = judge_together([judge_interval(*sorted(sign * end for end in each)) for each in (ends, change)])
        evidence = f"correlation: {format_interval(*ends)}; last layer less first: {format_interval(*change)}"
        claims.append(Claim(outcome, text, "Fig. 2", rho, float(sign), evidence, model))
    return claims


def _subtract(values: Any, low: Any, high: Any, *, last: int, first: int) -> tuple[float, float]:
    """The interval of one layer's value less another's, their errors taken as independent, which makes it too wide."""
    change = float(values.iloc[last] - values.iloc[first])
    deviation = float(np.hypot(*(high - low).iloc[[first, last]])) / 2
    return change - deviation, change + deviation


def judge_last_layer(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether the last layer has a larger median singular value than the one before it (Section 3.2, Fig. 1)."""
    values, low, high = _interval(frame, "sequence_spectral_median")
    if len(values) < 2 or values.tail(2).isna().any():
        return []
    change, ends = float(values.iloc[-1] - values.iloc[-2]), _subtract(values, low, high, last=-1, first=-2)
    text = (
        f"the median singular value of {model} changes by {change:+.3f} from the last layer but one to the last; the "
        "paper: the curve of the last layer is less steep, as labels guide it."
    )
    return [
        Claim(judge_interval(*ends), text, "Section 3.2, Fig. 1", change, evidence=format_interval(*ends), model=model)
    ]


def judge_skewness(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether the skewness of spectra goes with token uniformity over the layers (Section 6).

    Layers are all there are, and the text varies: both measures are drawn from the normal distributions of their
    intervals, and the rank correlation is computed for each draw.
    """
    skewness, uniformity = (_interval(frame, name) for name in ("sequence_spectral_skewness", "sequence_uniformity"))
    rho = rank_correlation(skewness[0], uniformity[0])
    if math.isnan(rho):
        return []
    rng, width = np.random.default_rng(0), 2 * stats.norm.ppf(1 - LEVEL / 2)
    first, second = (
        rng.normal(values, (high - low) / width, size=(_DRAWS, len(frame)))
        for values, low, high in (skewness, uniformity)
    )
    drawn = _correlate_ranks(first, second)
    ends = float(np.quantile(drawn, LEVEL / 2)), float(np.quantile(drawn, 1 - LEVEL / 2))
    text = (
        f"skewness of spectra and uniformity of tokens have a rank correlation of {rho:.2f} over the {len(frame)} "
        f"layers of {model}; the paper: they go together."
    )
    return [Claim(judge_interval(*ends), text, "Section 6", rho, evidence=format_interval(*ends), model=model)]


def _correlate_ranks(first: Any, second: Any) -> Any:
    """Spearman's correlation of each row of one array with the same row of the other, (k, n) twice -> (k,)."""
    one, two = (stats.rankdata(values, axis=1) - (values.shape[1] + 1) / 2 for values in (first, second))
    return (one * two).sum(1) / np.sqrt((one**2).sum(1) * (two**2).sum(1))
