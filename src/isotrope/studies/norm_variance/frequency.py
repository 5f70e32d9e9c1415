"""Q, M and V of token types against their frequency, and how many types and tokens there are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from isotrope.statistics.token_tables import frequent
from isotrope.studies.figures import run_figures
from isotrope.studies.norm_variance.intervals import Estimate, Trend, judge_every
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.norm_variance.token_types import scan_tokens
from isotrope.studies.options import iterate_layers
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.stacks import split_stacks
from isotrope.studies.verdict import judge_interval

#: |T| and |X| of the paper by the class of the model, whose tokenizer decides them (Table 3).
PRINTED_SIZES = {
    "BertModel": (24_149, 12_384_011),
    "RobertaModel": (24_719, 12_238_028),
    "GPT2Model": (24_718, 12_238_028),
}

_FIGURES = (
    *("frequency", "frequency-layers", "frequency-slopes", "token-counts", "norm-histograms"),
    "sequence-lengths",
)


def measure_frequency(options: NormVarianceOptions, model: str) -> Results:
    """Figs. 7, 10 to 17 and Table 3: slopes and R² of Q, M and V, and of their logarithms, on log10 of frequency."""
    findings = scan_tokens(options, model)
    rows = []
    for layer, by in iterate_layers(findings):
        row: dict[str, Any] = {"layer": layer}
        for letter, name in (("Q", "squared_norm"), ("M", "mean_norm"), ("V", "variance")):
            for prefix in ("", "log_"):
                slope = by[f"{prefix}{name}_on_frequency_slope"]
                row |= {f"{prefix}{letter}_slope": slope.value, f"{prefix}{letter}_low": slope.low}
                row |= {f"{prefix}{letter}_high": slope.high}
                row[f"{prefix}{letter}_r2"] = by[f"{prefix}{name}_on_frequency_r2"].value
        rows.append(row)
    frame = pd.DataFrame(rows)
    counts = findings.tables["tokens"]
    first = counts[counts["layer"] == str(findings.layers[0])]["n"].to_numpy()
    tables = [
        Table("frequency", f"Q, M and V of a type on log10 of its frequency, by layer, {model}", frame),
        Table("sizes", f"Types |T| and tokens |X|, {model} (Table 3)", count_types(first, findings.source["class"])),
        Table("histogram", f"How many types have log10 n between two tenths, {model}", _count_log_frequencies(first)),
    ]
    stacks = split_stacks(frame, findings.layer_names, model)
    claims = [claim for name, stack in stacks.items() for claim in judge_frequency(stack, name)]
    return Results(tables, claims, run_figures(options.run_folder(model), _FIGURES))


def count_types(n: Any, model_class: str) -> pd.DataFrame:
    """Count types and tokens from the occurrences of each type, with the paper's numbers for its kind of tokenizer."""
    printed = PRINTED_SIZES.get(model_class, (math.nan, math.nan))
    row = {"types": len(n), "tokens": int(n.sum()), "in window": int(frequent(n).sum())}
    frame: pd.DataFrame = pd.DataFrame([row | {"printed types": printed[0], "printed tokens": printed[1]}])
    return frame


def _count_log_frequencies(n: Any) -> pd.DataFrame:
    """Fig. 10."""
    edges = np.arange(0.0, math.ceil(10 * math.log10(n.max() + 1)) / 10 + 0.05, 0.1)
    frame: pd.DataFrame = pd.DataFrame({"from": edges[:-1], "types": np.histogram(np.log10(n), edges)[0]})
    return frame


#: A slope and the ends of its interval.
_ENDS = ("slope", "low", "high")


def judge_frequency(frame: pd.DataFrame, model: str = "") -> list[Claim]:
    """Judge whether M falls with frequency and V rises in all layers, and whether the slope of Q rises (Fig. 17)."""
    claims = []
    for letter, sign, word in (("M", -1, "falls"), ("V", 1, "rises")):
        usable = frame[frame[f"log_{letter}_slope"].notna()]
        slopes = [Estimate(*values) for values in usable[[f"log_{letter}_{end}" for end in _ENDS]].to_numpy().tolist()]
        toward = slopes if sign > 0 else [-slope for slope in slopes]
        if not toward:
            continue
        sure = sum(judge_interval(one.low, one.high) == "agrees" for one in toward)
        against = [str(layer) for layer, one in zip(usable["layer"], toward, strict=True) if one.value < 0]
        text = f"log {letter} {word} with frequency in {len(toward) - len(against)} of {len(toward)} layers"
        some = f", not in {', '.join(against)}" if len(against) < len(toward) else ""
        text += f"{some if against else ''}; the paper: in all"
        evidence = f"95 % intervals exclude 0 in {sure} of {len(toward)} layers"
        worst = min(toward, key=lambda one: one.value).value * sign
        claims.append(Claim(judge_every(toward), f"{text}.", "Fig. 17", worst, evidence=evidence, model=model))
    values, trend = frame["log_Q_slope"], Trend.of(*(frame[f"log_Q_{end}"] for end in _ENDS))
    if math.isfinite(rho := trend.correlation.value):
        text = (
            f"the slope of log Q on frequency goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank "
            f"correlation with depth {rho:.2f}; the paper: it tends to rise, above all in GPT-2."
        )
        claims.append(Claim(trend.judge(), text, "Fig. 17", rho, evidence=trend.evidence, model=model))
    return claims
