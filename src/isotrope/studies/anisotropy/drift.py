"""Whether drift explains anisotropy: one table, one chart and claims by class over all models of a study.

The paper's p-values (Figs. 5 and 11) treat layers as independent, which they are not: two random walks of 13 layers are
"significant" about one time in three. So they are drawn and tabulated, and decide nothing. A claim is decided by the
larger of two permutation p-values of Spearman's correlation: that of the layers, which is exact if layers are
exchangeable, and that of the changes from layer to layer, which is exact if layers are random walks. For
autoregressive layers of any strength in between it rejects at most 3 times in 100. It is corrected for the number of
models by Holm's method. A correlation that is not significant does not show that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.drawing.log_axis import use_log_axis
from isotrope.drawing.style import BLUE, GREY, PAGE_WIDTH
from isotrope.measures import get
from isotrope.measures.drift_correlation import LayerReadings
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.model_class import CLASSES, is_character_alone
from isotrope.studies.result import Claim
from isotrope.studies.verdict import LEVEL, Outcome, judge_most, judge_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The correlations of drift and mean cosine over layers, with their p-values by permutation and by the usual formula.
CORRELATIONS = tuple(f"{kind}{end}" for kind in ("spearman", "pearson") for end in ("", "_p", "_p_asymptotic"))

#: The colour of the line of significance in the paper.
_RED = "#CC0000"

#: Classes of which the paper says that drift explains their anisotropy, and the models that it leaves out.
_EXPLAINED: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("subword", "encoder-decoder"), ("gpt2",), "drift explains subword models, but for GPT-2"),
    (("character",), ("manta",), "drift explains character models, but for CANINE-c and MANTa"),
)

#: Classes and families of which the paper says that it does not.
_UNEXPLAINED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("vision transformer", (), "drift does not explain vision transformers"),
    ("speech", ("hubert", "whisper"), "drift does not explain HuBERT and Whisper"),
)


def correlate_layers(drift: Sequence[float], cosine: Sequence[float]) -> dict[str, float]:
    """Spearman's and Pearson's correlation over layers, with p-values by permutation and by the usual formula."""
    values = LayerReadings(np.asarray(drift, dtype=np.float64), np.asarray(cosine, dtype=np.float64))
    return {name: get(f"drift_correlation_{name}")(values) for name in CORRELATIONS}


def correlate_changes(drift: Sequence[float], cosine: Sequence[float]) -> dict[str, float]:
    """Spearman's correlation of the changes from layer to layer, and the p-value that decides a claim.

    Args:
        drift: norm of the mean of each layer.
        cosine: mean cosine of each layer.

    Returns:
        `changes` and `changes_p`, its p-value by permutation; `deciding_p`, the larger of this one and that of the
        layers themselves. NaN for fewer than four layers.
    """
    values = LayerReadings(np.asarray(drift, dtype=np.float64), np.asarray(cosine, dtype=np.float64))
    steps = LayerReadings(*(np.diff(value) for value in values))
    changes, changes_p = (get(f"drift_correlation_spearman{end}")(steps) for end in ("", "_p"))
    layers_p = get("drift_correlation_spearman_p")(values)
    both = math.nan if math.isnan(changes_p) or math.isnan(layers_p) else max(changes_p, layers_p)
    return {"changes": changes, "changes_p": changes_p, "deciding_p": both}


def join_drift(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row for each model, in the order of the classes, with p-values corrected for the number of models."""
    frame = pd.concat(tables, ignore_index=True)
    frame["corrected_p"] = holm(frame["deciding_p"].astype(float).tolist())
    order = {name: number for number, name in enumerate(CLASSES)}
    places = frame["class"].map(order)
    ordered: pd.DataFrame = frame.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)
    return ordered


def judge_drift(frame: pd.DataFrame) -> list[Claim]:
    """Which classes drift explains (Section 3.3).

    Args:
        frame: a row for each model, as `join_drift` gives it.
    """
    trained = frame[frame["trained"].astype(bool)]
    claims = []
    for classes, exceptions, what in _EXPLAINED:
        rows = trained[trained["class"].isin(classes) & ~trained["family"].isin(exceptions)]
        if classes == ("character",):
            left_out = [is_character_alone(name) and "canine" in name.lower() for name in rows["model"]]
            rows = rows[~np.array(left_out, dtype=bool)]
        claims += _make_claims(rows, classes[0], judge_most(_judge_models(rows)), what)
    for name, families, what in _UNEXPLAINED:
        rows = trained[trained["class"] == name]
        rows = rows[rows["family"].isin(families)] if families else rows
        found: Outcome = "contradicts" if "agrees" in _judge_models(rows) else "undecided"
        claims += _make_claims(rows, name, found, what)
    rows = trained[trained["class"] == "convolution"]
    found = "agrees" if "agrees" in _judge_models(rows) else "undecided"
    return claims + _make_claims(rows, "convolution", found, "drift explains some convolutions")


def _judge_models(rows: pd.DataFrame) -> list[Outcome]:
    """For each model whether the mean cosine rises with drift."""
    return [judge_test(row["spearman"], row["corrected_p"]) for row in rows.to_dict("records")]


def _make_claims(rows: pd.DataFrame, model_class: str, outcome: Outcome, what: str) -> list[Claim]:
    rows = rows[rows["spearman"].notna()]
    if rows.empty:
        return []
    shown = "; ".join(f"{row['model']} {row['spearman']:.2f}" for row in rows.to_dict("records"))
    decided = "; ".join(f"{row['model']} {row['corrected_p']:.3g}" for row in rows.to_dict("records"))
    below = int((rows["spearman_p_asymptotic"].astype(float) < LEVEL).sum())
    text = (
        f"{model_class}: rank correlation of drift and mean cosine over layers: {shown}; by the paper's test "
        f"{below} of {len(rows)} are below {LEVEL}; the paper: {what}."
    )
    alone = str(rows["model"].iloc[0]) if len(rows) == 1 else ""
    evidence = f"corrected p of layers and of their changes: {decided}"
    return [Claim(outcome, text, "Fig. 5", evidence=evidence, model=alone, model_class=model_class)]


def make_p_values_figure(frame: pd.DataFrame) -> StudyFigure:
    """Figs. 5 and 11: the p-values of all models by class, with the line of significance.

    Args:
        frame: a row for each model, as `join_drift` gives it.
    """
    title = (
        "p-values of the correlation of the norm of the mean with the mean cosine over layers, by Spearman's (Fig. 5) "
        "and Pearson's test (Fig. 11); layers are not independent, so that they describe and prove nothing."
    )
    return make_figure("p_values", title, partial(_draw_p_values, frame), width=PAGE_WIDTH, height=4.4)


def find_shown_p(frame: pd.DataFrame, kind: str) -> pd.Series[Any]:
    """The p-values that the chart shows: those of the usual formula, or of permutation where that gives 0."""
    usual, permuted = (frame[f"{kind}_p{end}"].astype(float) for end in ("_asymptotic", ""))
    shown: pd.Series[Any] = usual.where(usual > 0, permuted)
    return shown


def _draw_p_values(frame: pd.DataFrame, figure: Figure) -> None:
    panels = figure.subplots(2, 1, sharex=True)
    places = np.arange(len(frame))
    for axes, kind in zip(panels, ("spearman", "pearson"), strict=True):
        axes.plot(places, find_shown_p(frame, kind), "o", color=BLUE, label="usual formula")
        axes.plot(places, frame[f"{kind}_p"].astype(float), "o", color=GREY, fillstyle="none", label="permutation")
        axes.axhline(LEVEL, color=_RED, linestyle=":", label=f"p = {LEVEL}")
        use_log_axis(axes)
        axes.set_ylabel(f"p, {kind.capitalize()}")
    names = frame["class"].tolist()
    for border in [i for i in range(1, len(names)) if names[i] != names[i - 1]]:
        for axes in panels:
            axes.axvline(border - 0.5, color=GREY, linewidth=0.6)
    for number, name in enumerate(dict.fromkeys(names)):
        middle = float(np.mean([i for i, one in enumerate(names) if one == name]))
        panels[0].annotate(
            name,
            (middle, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 9 * (number % 2)),
            textcoords="offset points",
            ha="center",
        )
    panels[1].set_xticks(places, frame["model"].tolist(), rotation=45, ha="right")
    panels[1].set_xlim(-0.6, len(frame) - 0.4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
