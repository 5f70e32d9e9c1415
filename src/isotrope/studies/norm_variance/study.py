"""Norm and variance of token types by layer: the protocol of Yamagiwa and Shimodaira 2024."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.statistics.token_tables import FEWEST, MOST
from isotrope.studies.figures import run_figures
from isotrope.studies.norm_variance.post_norm import find_layer_norms, measure_post_norm
from isotrope.studies.norm_variance.token_types import (
    MEASURES,
    TRADE_OFF,
    compare_filters,
    compare_sizes,
    measure_words,
    scan_tokens,
)
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Study, Table, depth_correlation
from isotrope.studies.runner import Results, repeat_for_models, run_study

PAPER = "Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance"

_SHARES = ("mean_share", "within_share", "between_share", "within_of_variance")

#: The residual up to which the decomposition holds.
_EXACT = 1e-9

#: Minimal slope and maximal R² over layers: "approximately −1" and "1" for BERT and RoBERTa, −0.2 and 0.5 for GPT-2.
_POST, _PRE = (-1.0, 1.0), (-0.2, 0.5)

#: How near "approximately" is.
_NEAR = 0.1


def norm_variance(*, output: str | Path, texts: int | None = None, **common: Any) -> Study:
    """Q, M and V of every token type and layer, their trade-off, shares, frequency, words and the post-LN bound.

    Args:
        output: the folder for tables, figures and runs.
        texts: the most texts to read.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`. A quick study reads less text,
            and leaves out smaller corpora.

    References:
        Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance.
    """
    options = StudyOptions(output=output, texts=texts, **common)
    experiments = dict(_EXPERIMENTS)
    if options.quick:
        del experiments["sizes"]
    prepare = partial(options.announce, MEASURES, 2.0 if options.quick else 2.75)
    return run_study("norm-variance", PAPER, repeat_for_models(options, experiments), options, prepare=prepare)


def _measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 4 to 6 and 18 to 20: the trade-off and the decomposition by layer."""
    rows = []
    for layer, by in iterate_layers(scan_tokens(options, model)):
        tokens = saved_summary(options.run_folder(model), layer).tokens
        assert tokens is not None
        # All four from the sums by token type: moments in fast precision are another path, with roundings of their own.
        table = tokens.table
        q, m = float(table.n @ table.q) / int(table.n.sum()), table.mean_square
        w, b = by["within_variance"].value, by["between_variance"].value
        row: dict[str, Any] = {"layer": layer, "Q": q, "M": m, "V_W": w, "V_B": b, "residual": abs(q - m - w - b) / q}
        for name in TRADE_OFF:
            row |= {name: by[name].value, f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        for name in _SHARES:
            row |= {name: by[name].value, f"{name}_window": get(name)(tokens, variant="published")}
        rows.append(row | {"self_similarity": by["self_similarity"].value})
    frame = pd.DataFrame(rows)
    title = f"Decomposition Q = M + V_W + V_B and trade-off of V with M by layer, {model}"
    norms = find_layer_norms(options.input(model).load())
    claims = [*_judge_decomposition(frame), *judge_trade_off(frame, post_norm=len(norms) == len(frame))]
    names = ("norm-variance", "norm-variance-layers", "norm-variance-tokens", "variance-shares", "squared-norms")
    return Results([Table("layers", title, frame)], claims, run_figures(options.run_folder(model), names))


def _judge_decomposition(frame: pd.DataFrame) -> list[Claim]:
    """The identity, and how the shares change with depth (Figs. 5 and 6)."""
    worst = float(frame["residual"].max())
    text = f"Q = M + V_W + V_B holds to {worst:.1e} of Q in every layer."
    claims = [Claim.judge(worst <= _EXACT, text, "Eq. 13", worst, 0.0)]
    for column, what, where in (
        ("mean_share_window", "M/Q rises with depth", "Fig. 5"),
        ("within_of_variance_window", "V_W/V rises with depth", "Fig. 6"),
    ):
        values = frame[column]
        rho = depth_correlation(values)
        if math.isnan(rho):
            continue
        ends = f"from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth {rho:.2f}"
        claims.append(Claim.judge(rho > 0.5, f"{what}: {ends}.", where, rho, 1.0))
    return claims


def judge_trade_off(frame: pd.DataFrame, *, post_norm: bool) -> list[Claim]:
    """The best layer's slope and R², with their intervals, and where the C.V. of Q is least (Fig. 4)."""
    usable = frame[frame["variance_on_mean_r2"].notna()]  # where types do not vary there is no R²
    if not len(usable):
        return [Claim("note", "too few frequent token types for a trade-off of V with M.", "Fig. 4")]
    kind = "post-LN (BERT, RoBERTa)" if post_norm else "pre-LN (GPT-2)"
    expected = _POST if post_norm else _PRE
    claims = []
    for name, word, value, lowest in (
        ("variance_on_mean_slope", "slope", expected[0], True),
        ("variance_on_mean_r2", "R²", expected[1], False),
    ):
        best = usable.iloc[int((usable[name] * (1 if lowest else -1)).to_numpy().argmin())]
        ours, low, high = best[name], best[f"{name}_low"], best[f"{name}_high"]
        agrees = low - _NEAR <= value <= high + _NEAR if low == low else abs(ours - value) <= _NEAR
        text = (
            f"{'lowest' if lowest else 'highest'} {word} of V on M is {ours:.3f} ({low:.3f} to {high:.3f}) in layer "
            f"{_format_layer(best)}; the paper finds about {value:g} for {kind} models, on BookCorpus."
        )
        claims.append(Claim.judge(agrees, text, "Figs. 2 and 4", float(ours), value))
    index = int(usable["squared_norm_variation"].to_numpy().argmin())
    inner = 0 < index < len(usable) - 1
    least = usable.iloc[index]
    value, layer = least["squared_norm_variation"], _format_layer(least)
    text = f"the C.V. of Q is least ({value:.3f}) in layer {layer} of {len(usable)}"
    claims.append(Claim.judge(inner, f"{text}; the paper: in the intermediate layers.", "Fig. 4"))
    return claims


def _format_layer(row: pd.Series[Any]) -> str:
    """The name of a layer, without the fraction that a row of numbers gave it."""
    return str(row["layer"]).removesuffix(".0")


def _measure_frequency(options: StudyOptions, model: str) -> Results:
    """Figs. 7, 11 to 13 and 17: slopes and R² of Q, M and V on log10 of frequency, and of their logarithms."""
    findings = scan_tokens(options, model)
    rows = []
    for layer, by in iterate_layers(findings):
        row: dict[str, Any] = {"layer": layer}
        for letter, name in (("Q", "squared_norm"), ("M", "mean_norm"), ("V", "variance")):
            for prefix in ("", "log_"):
                for suffix in ("slope", "r2"):
                    r = by[f"{prefix}{name}_on_frequency_{suffix}"]
                    row[f"{prefix}{letter}_{suffix}"] = r.value
                    if prefix and suffix == "slope":
                        row |= {f"log_{letter}_low": r.low, f"log_{letter}_high": r.high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    counts = findings.tables["tokens"]
    first = counts[counts["layer"] == str(findings.layers[0])]["n"].to_numpy()
    in_window = int(((first >= FEWEST) & (first <= MOST)).sum())
    sizes = pd.DataFrame([{"types": len(first), "tokens": int(first.sum()), "in window": in_window}])
    tables = [
        Table("frequency", f"Q, M and V of a type on log10 of its frequency, by layer, {model}", frame),
        Table("sizes", f"Types |T| and tokens |X|, {model} (paper: 24,149 and 12,384,011 for BERT)", sizes),
        Table("histogram", f"How many types have log10 n between two tenths, {model}", _count_log_frequencies(first)),
    ]
    names = ("frequency", "frequency-layers", "frequency-slopes", "token-counts", "norm-histograms")
    return Results(tables, _judge_frequency(frame), run_figures(options.run_folder(model), names))


def _count_log_frequencies(n: Any) -> pd.DataFrame:
    """Fig. 10."""
    edges = np.arange(0.0, math.ceil(10 * math.log10(n.max() + 1)) / 10 + 0.05, 0.1)
    frame: pd.DataFrame = pd.DataFrame({"from": edges[:-1], "types": np.histogram(np.log10(n), edges)[0]})
    return frame


def _judge_frequency(frame: pd.DataFrame) -> list[Claim]:
    """M falls with frequency and V rises in all layers (Fig. 17)."""
    claims = []
    for letter, sign, word in (("M", -1, "falls"), ("V", 1, "rises")):
        usable = frame[frame[f"log_{letter}_slope"].notna()]
        against = usable[sign * usable[f"log_{letter}_slope"] < 0]
        layers = ", ".join(map(str, against["layer"]))
        text = f"log {letter} {word} with frequency in {len(usable) - len(against)} of {len(usable)} layers"
        text += f", not in {layers}." if layers else "."
        claims.append(Claim.judge(not layers, text, "Fig. 17"))
    return claims


#: The experiments with each model, in their order.
_EXPERIMENTS = {
    "layers": _measure_layers,
    "frequency": _measure_frequency,
    "filters": compare_filters,
    "sizes": compare_sizes,
    "words": measure_words,
    "post-norm": measure_post_norm,
}
