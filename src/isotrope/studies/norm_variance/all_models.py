"""The models of the study together: Tables 1 and 3, and the curves of all models over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from isotrope.runs.run import Run
from isotrope.studies.figures import make_overlay_figure
from isotrope.studies.norm_variance.intervals import Estimate, compute_difference
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.norm_variance.post_norm import find_norm_kind
from isotrope.studies.norm_variance.token_types import TRADE_OFF
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, load_part
from isotrope.studies.stacks import split_stacks
from isotrope.studies.verdict import judge_interval, judge_print


class PrintedModel(NamedTuple):
    """Layers with the input, width and millions of parameters of a model in the paper (Table 1)."""

    layers: int
    width: int
    millions: int


PRINTED_MODELS = {
    "bert-base-uncased": PrintedModel(13, 768, 110),
    "roberta-base": PrintedModel(13, 768, 125),
    "gpt2": PrintedModel(13, 768, 117),
    "bert-large-uncased": PrintedModel(25, 1024, 340),
    "roberta-large": PrintedModel(25, 1024, 355),
    "gpt2-medium": PrintedModel(25, 1024, 345),
}

#: How far a rounded number of parameters may be from the right one, as a share.
_ROUNDED = 0.02

#: The figures over all models: name, title and the columns with their labels.
_OVERLAYS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "trade-off",
        "C.V. of Q over token types, slope of V on M and its R², by depth (Fig. 4).",
        dict(zip(TRADE_OFF, ("C.V. of Q", "slope of V on M", "R² of V on M"), strict=True)),
    ),
    (
        "shares",
        "Shares of Q over types with 10 to 100,000 occurrences, by depth (Figs. 5 and 18).",
        {
            "mean_share_window": "M / Q",
            "variance_share_window": "V / Q",
            "within_share_window": "V_W / Q",
            "between_share_window": "V_B / Q",
        },
    ),
    ("within", "V_W / V over types with 10 to 100,000 occurrences (Fig. 6).", {"within_of_variance_window": "V_W / V"}),
    (
        "slopes",
        "Slopes of log₁₀(1 + Q), log₁₀(1 + M) and log₁₀(1 + V) on log₁₀ n, by depth (Fig. 17).",
        {"log_Q_slope": "slope of log₁₀(1 + Q)", "log_M_slope": "of log₁₀(1 + M)", "log_V_slope": "of log₁₀(1 + V)"},
    ),
    (
        "norms",
        "Q, M and V over types with 10 to 100,000 occurrences, by depth (Fig. 19).",
        {"Q_window": "Q", "M_window": "M", "V_window": "V"},
    ),
    (
        "variances",
        "V_W, V_B and V_B / V over types with 10 to 100,000 occurrences, by depth (Fig. 20).",
        {"V_W_window": "V_W", "V_B_window": "V_B", "between_of_variance_window": "V_B / V"},
    ),
)


def join_models(options: NormVarianceOptions) -> Results:
    """Tables 1 and 3 and Figs. 4 to 6 and 17 to 20 over all models of the study, from the parts of each."""
    layers = _join(options.folder, options.names, "layers", "trade_off")
    curves = layers
    for part, table in (("layers", "window"), ("frequency", "frequency")):
        more = _join(options.folder, options.names, part, table)
        curves = curves.merge(more, on=["model", "layer"], sort=False)
    models = pd.DataFrame([_describe_model(options, name) for name in options.names])
    sizes = _join(options.folder, options.names, "frequency", "sizes")
    columns = ["model", "layer", *dict.fromkeys(column for _, _, shown in _OVERLAYS for column in shown)]
    tables = [
        Table("models", "Layers with the input, width and parameters, with the printed ones (Table 1)", models),
        Table("sizes", "Types |T| and tokens |X|, with the printed ones, over BookCorpus (Table 3)", sizes),
        Table("curves", "What the figures over all models show, by layer", curves[columns]),
    ]
    lines = curves.assign(model=[name for model in options.names for name in _name_lines(options, model, curves)])
    figures = [make_overlay_figure(name, title, lines, shown) for name, title, shown in _OVERLAYS]
    return Results(tables, [*judge_parameters(models), *judge_variations(layers, models)], figures)


def _join(folder: Any, models: Sequence[str], part: str, table: str) -> pd.DataFrame:
    """The tables of one name of all models, with the column `model` in front."""
    frames = []
    for model in models:
        (frame,) = (t.frame for t in load_part(folder, f"{model} {part}").tables if t.name == table)
        frames.append(frame.assign(model=model))
    joined = pd.concat(frames, ignore_index=True)
    ordered: pd.DataFrame = joined[["model", *(name for name in joined if name != "model")]]
    return ordered


def _name_lines(options: NormVarianceOptions, model: str, curves: pd.DataFrame) -> list[str]:
    """The name of the line that each layer of a model belongs to: encoder and decoder have lines of their own."""
    names = Run(options.run_folder(model)).findings().layer_names
    stacks = split_stacks(curves[curves["model"] == model], names, model)
    return [name for name, rows in stacks.items() for _ in range(len(rows))]


def _describe_model(options: NormVarianceOptions, name: str) -> dict[str, Any]:
    """One row of Table 1."""
    findings = Run(options.run_folder(name)).findings()
    table = load_part(options.folder, f"{name} post-norm").tables[0].frame
    closed = table["layer"][table["predicted Q"].notna()].tolist()
    kind = find_norm_kind(options.input(name).load(), findings.layer_names, closed)
    printed = PRINTED_MODELS.get(name)
    return {
        "model": name,
        "layers": len(findings.layers),
        "printed layers": printed.layers if printed else math.nan,
        "width": findings.source["width"],
        "printed width": printed.width if printed else math.nan,
        "parameters": findings.source.get("parameters", math.nan),
        "printed parameters": printed.millions * 1_000_000 if printed else math.nan,
        "layers that a norm closes": len(closed),
        "norm": kind or "not known",
    }


def judge_parameters(models: pd.DataFrame) -> list[Claim]:
    """Judge printed numbers of parameters, which no sample decides (Table 1)."""
    claims = []
    for row in models[models["printed parameters"].notna()].to_dict("records"):
        ours, printed = int(row["parameters"]), int(row["printed parameters"])
        right = abs(ours - printed) <= _ROUNDED * printed
        count = f"{ours / 1e6:.0f} million parameters without its head"
        text = f"{row['model']} has {count}, the paper prints {printed / 1e6:.0f}."
        claims.append(Claim(judge_print(right), text, "Table 1", ours, printed, model=row["model"]))
    return claims


def judge_variations(layers: pd.DataFrame, models: pd.DataFrame) -> list[Claim]:
    """Judge whether the least C.V. of Q of each pre-LN model is larger than that of each post-LN one (Fig. 4)."""
    name = TRADE_OFF[0]
    least: dict[str, Estimate] = {}
    for model, rows in layers[layers[name].notna()].groupby("model", sort=False):
        best = rows.iloc[int(rows[name].to_numpy().argmin())]
        least[str(model)] = Estimate(best[name], best[f"{name}_low"], best[f"{name}_high"])
    kinds = dict(zip(models["model"], models["norm"], strict=True))
    pairs = [(a, b) for a in least for b in least if (kinds[a], kinds[b]) == ("pre-LN", "post-LN")]
    claims = []
    for pre, post in pairs:
        found = compute_difference(least[pre], least[post])
        text = (
            f"the least C.V. of Q over layers is {least[pre].value:.3f} for {pre} (pre-LN) and "
            f"{least[post].value:.3f} for {post} (post-LN); the paper: larger without a norm at the end of a layer."
        )
        evidence = f"difference: {found.evidence}" if found.evidence else ""
        outcome = judge_interval(found.low, found.high)
        claims.append(Claim(outcome, text, "Sections 5.2 and 6.2, Fig. 4", found.value, evidence=evidence))
    return claims
