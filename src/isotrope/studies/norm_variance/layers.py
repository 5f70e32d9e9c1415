"""The trade-off of V with M and the decomposition of Q by layer, and the tokens of Fig. 1."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from isotrope.drawing.style import format_token
from isotrope.errors import Undefined
from isotrope.figures.run_data import RunData
from isotrope.figures.token_scatter import select_tokens
from isotrope.measures import get
from isotrope.measures.token_variance import VarianceSplit, split
from isotrope.runs.saved_statistics import saved_summary
from isotrope.statistics.token_tables import in_window
from isotrope.studies.figures import run_figures
from isotrope.studies.norm_variance.intervals import (
    Estimate,
    Trend,
    compute_difference,
    compute_share_intervals,
)
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.norm_variance.post_norm import find_layer_norms, find_norm_kind
from isotrope.studies.norm_variance.token_types import TRADE_OFF, scan_tokens
from isotrope.studies.options import iterate_layers
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.stacks import split_stacks
from isotrope.studies.verdict import judge_equal, judge_exact, judge_interval

_SHARES = ("mean_share", "within_share", "between_share", "within_of_variance")

#: The residual up to which the decomposition holds.
_EXACT = 1e-9

#: Minimal slope and maximal R² over layers: "approximately −1" and "1" for BERT and RoBERTa, −0.2 and 0.5 for GPT-2.
_POST, _PRE = (-1.0, 1.0), (-0.2, 0.5)

#: How near "approximately" is.
_NEAR = 0.1

#: Q, M and V of two tokens in layer 6 of bert-base-uncased (Section 1).
PRINTED_TOKENS = {"once": (494.1, 239.9, 254.2), "winked": (485.6, 404.5, 81.1)}

_FIGURES = (
    *("token-clouds", "norm-variance", "norm-variance-layers", "norm-variance-tokens"),
    *("variance-shares-window", "variance-shares", "squared-norms"),
)


def measure_layers(options: NormVarianceOptions, model: str) -> Results:
    """Figs. 1, 2, 4 to 6, 8 and 18 to 20, and Table 2: the trade-off and the decomposition by layer."""
    findings = scan_tokens(options, model)
    frame = pd.DataFrame([_describe_layer(options, model, layer, by) for layer, by in iterate_layers(findings)])
    loaded = options.input(model).load()
    norms = find_layer_norms(loaded)
    run = RunData(options.run_folder(model))
    middle = run.find_layer(None, "middle")
    printed = "printed values: bert-base-uncased over BookCorpus, layer 6"
    of_tokens = f"n, Q, M and V of the tokens of Fig. 1 in layer {middle}, {model} (Table 2; {printed})"
    trade_off = [name for name in frame if str(name).startswith(TRADE_OFF)]
    window = [name for name in frame if "_window" in str(name)]
    others = [name for name in frame if name not in (*trade_off, *window)]
    over = "over types with 10 to 100,000 occurrences"
    tables = [
        Table(
            "trade_off", f"C.V. of Q, slope and R² of V on M by layer, {model} (Fig. 4)", frame[["layer", *trade_off]]
        ),
        Table(
            "window", f"Q = M + V_W + V_B by layer {over}, {model} (Figs. 5, 6, 18 to 20)", frame[["layer", *window]]
        ),
        Table("layers", f"Q = M + V_W + V_B by layer over all types, {model}", frame[others]),
        Table("tokens", of_tokens, list_tokens(run)),
    ]
    kind, claims = find_norm_kind(loaded, findings.layer_names, norms), list[Claim]()
    for name, stack in split_stacks(frame, findings.layer_names, model).items():
        claims += judge_decomposition(stack, name)
        claims += judge_trade_off(stack, name, post_norm=None if kind is None else kind == "post-LN")
    return Results(tables, claims, run_figures(options.run_folder(model), _FIGURES))


def _describe_layer(options: NormVarianceOptions, model: str, layer: Any, by: dict[str, Any]) -> dict[str, Any]:
    """One row of the table of layers; what ends in `_window` is over types with 10 to 100,000 occurrences."""
    summary = saved_summary(options.run_folder(model), layer)
    tokens = summary.tokens
    assert tokens is not None
    # All four from the sums by token type: moments in fast precision are another path, with roundings of their own.
    q, m, w, b = split(tokens.table)
    row: dict[str, Any] = {"layer": layer, "Q": q, "M": m, "V_W": w, "V_B": b, "residual": abs(q - m - w - b) / q}
    for name in TRADE_OFF:
        row |= {name: by[name].value, f"{name}_low": by[name].low, f"{name}_high": by[name].high}
    row |= {name: by[name].value for name in _SHARES}
    intervals = compute_share_intervals(summary, _SHARES)
    for name, (low, high) in intervals.items():
        value = get(name)(tokens, variant="published")
        row |= {f"{name}_window": value, f"{name}_window_low": low, f"{name}_window_high": high}
    window = _split_window(tokens)
    row |= {"Q_window": window.q, "M_window": window.m, "V_window": window.within + window.between}
    row |= {"V_W_window": window.within, "V_B_window": window.between}
    row["between_of_variance_window"] = 1.0 - row["within_of_variance_window"]
    row["variance_share_window"] = 1.0 - row["mean_share_window"]
    alike = by["self_similarity"]
    row["self_similarity"] = alike.value
    return row | {"self_similarity_low": alike.low, "self_similarity_high": alike.high}


def _split_window(tokens: Any) -> VarianceSplit:
    """Q = M + V_W + V_B over the types in the window, NaN where there is none."""
    try:
        return split(in_window(tokens))
    except Undefined:
        return VarianceSplit(math.nan, math.nan, math.nan, math.nan)


def list_tokens(run: RunData) -> pd.DataFrame:
    """List n, Q, M and V of the tokens that figures name in the middle layer, the most frequent first (Table 2).

    The paper's two examples, once and winked, are among them where they are in the window, with their printed values.
    """
    columns = ["token", "n", "Q", "M", "V", "printed Q", "printed M", "printed V"]
    rows = []
    types = run.token_types(run.find_layer(None, "middle"), at_least=0)
    chosen = set(select_tokens(types, run.seed).tolist()) if types.token else set()
    chosen |= {i for i, token in enumerate(types.token) if format_token(token) in PRINTED_TOKENS}
    for i in sorted(chosen, key=lambda i: (-types.n[i], types.token[i])):
        token = format_token(types.token[i])
        printed = PRINTED_TOKENS.get(token, (math.nan, math.nan, math.nan))
        values = (token, int(types.n[i]), types.q[i], types.m[i], types.v[i], *printed)
        rows.append(dict(zip(columns, values, strict=True)))
    frame: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return frame


def _take(row: pd.Series[Any], name: str) -> Estimate:
    """The value of a column of the table of layers with its interval."""
    return Estimate(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]))


#: What rises with depth: column, sign (−1 for what falls), what it is, and where the paper says so.
_TRENDS = (
    ("mean_share_window", 1, "M/Q", "Figs. 5 and 18"),
    ("within_of_variance_window", 1, "V_W/V", "Fig. 6"),
    ("within_share_window", 1, "V_W/Q", "Fig. 18"),
    ("between_share_window", -1, "V_B/Q", "Fig. 18"),
    ("self_similarity", -1, "the cosine between occurrences of a type", "Section 5.3"),
)


def judge_decomposition(frame: pd.DataFrame, model: str = "") -> list[Claim]:
    """Judge the identity, and how the shares change with depth (Figs. 5, 6 and 18)."""
    worst = float(frame["residual"].max())
    text = f"Q = M + V_W + V_B holds to {worst:.1e} of Q in every layer."
    claims = [Claim(judge_exact(worst <= _EXACT), text, "Eq. 13", worst, 0.0, model=model)]
    for column, sign, what, where in _TRENDS:
        values = frame[column]
        trend = Trend.of(values, frame[f"{column}_low"], frame[f"{column}_high"])
        rho = trend.correlation.value
        if math.isnan(rho):
            continue
        text = (
            f"{what} goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth "
            f"{rho:.2f}; the paper: it {'rises' if sign > 0 else 'falls'}."
        )
        claims.append(Claim(trend.judge(sign), text, where, rho, float(sign), trend.evidence, model))
    return claims


def judge_trade_off(frame: pd.DataFrame, model: str = "", *, post_norm: bool | None) -> list[Claim]:
    """Judge slope and R² of V on M in the best layer, and where the C.V. of Q is least, by their intervals (Fig. 4).

    post_norm: whether layers end with a norm; None where the model does not show it, and the paper's values for
    neither kind are compared.
    """
    usable = frame[frame["variance_on_mean_r2"].notna()]  # where types do not vary there is no R²
    if not len(usable):
        return [Claim("note", "too few frequent token types for a trade-off of V with M.", "Fig. 4", model=model)]
    kind = "post-LN (BERT, RoBERTa)" if post_norm else "pre-LN (GPT-2)"
    claims = []
    if post_norm is None:
        return _judge_least_variation(usable, model)
    expected = _POST if post_norm else _PRE
    for name, word, value in zip(TRADE_OFF[1:], ("lowest slope", "highest R²"), expected, strict=True):
        order = usable[name] if word.startswith("lowest") else -usable[name]
        best = usable.iloc[int(order.to_numpy().argmin())]
        found = _take(best, name)
        text = (
            f"the {word} of V on M is {found.value:.3f}, in layer {_format_layer(best)}; the paper finds about "
            f"{value:g} for {kind} models, on BookCorpus."
        )
        outcome = judge_equal(found.low, found.high, published=value, tolerance=_NEAR)
        claims.append(Claim(outcome, text, "Figs. 2 and 4", found.value, value, found.evidence, model))
    return [*claims, *_judge_least_variation(usable, model)]


def _judge_least_variation(usable: pd.DataFrame, model: str) -> list[Claim]:
    """Judge whether the C.V. of Q is less in some layer between the first and the last than in these two."""
    name = TRADE_OFF[0]
    if len(usable) < 3:
        return []
    inner = usable.iloc[1:-1]
    least = inner.iloc[int(inner[name].to_numpy().argmin())]
    ends = min((_take(usable.iloc[at], name) for at in (0, -1)), key=lambda end: end.value)
    found = compute_difference(ends, _take(least, name))
    text = (
        f"the C.V. of Q is {least[name]:.3f} in layer {_format_layer(least)}, the least between the first layer "
        f"({usable[name].iloc[0]:.3f}) and the last ({usable[name].iloc[-1]:.3f}); the paper: least in the middle."
    )
    evidence = f"difference to the lesser end: {found.evidence}" if found.evidence else ""
    outcome = judge_interval(found.low, found.high)
    return [Claim(outcome, text, "Fig. 4", float(least[name]), evidence=evidence, model=model)]


def _format_layer(row: pd.Series[Any]) -> str:
    """The name of a layer, without the fraction that a row of numbers gave it."""
    return str(row["layer"]).removesuffix(".0")
