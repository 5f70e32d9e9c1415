"""Spectra of sequences before and after fine-tuning, by layer: Figs. 5 and 8 to 13 of Yan et al. 2022."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.style import GREY, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.errors import InputError
from isotrope.finetuning.runs import GlueRun
from isotrope.finetuning.settings import BASE, family
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.result import Claim
from isotrope.studies.verdict import judge_interval, seeds_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The share of singular values at which ΔL is read.
_SHARE = 0.8

#: The rows of the figure: when, and by which method.
_BEFORE, _PLAIN, _REPAIRED = ("pretrained", BASE), ("trained", BASE), ("trained", "softdecay")
_TITLES = {_BEFORE: "before training", _PLAIN: "trained", _REPAIRED: "with SoftDecay"}


def tabulate_reach(runs: Iterable[GlueRun]) -> pd.DataFrame:
    """A row for each run, layer and time: ΔL with its 95 % interval over sequences.

    Runs of version 0.1 have no spectra of single layers and are left out.
    """
    columns = ["task", "method", "seed", "when", "layer", "reach", "low", "high"]
    rows = [
        (run.task, run.method, run.seed, when, number, layer["reach"], layer["reach_low"], layer["reach_high"])
        for run, when, number, layer in _iterate_layers(runs)
    ]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return frame


def tabulate_cdf(runs: Iterable[GlueRun]) -> pd.DataFrame:
    """The cumulative curves of the first seed: the mean share of the values σ/σ₁ of a sequence at or below `value`."""
    found = list(runs)
    first = min((run.seed for run in found), default=0)
    rows = [
        (run.task, run.method, when, number, round(i / (len(layer["cdf"]) - 1), 6), share)
        for run, when, number, layer in _iterate_layers(run for run in found if run.seed == first)
        for i, share in enumerate(layer["cdf"] or ())
    ]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["task", "method", "when", "layer", "value", "share"])
    return frame


def _iterate_layers(runs: Iterable[GlueRun]) -> Iterable[tuple[GlueRun, str, int, dict[str, Any]]]:
    for run in runs:
        for when in ("pretrained", "trained"):
            for number, layer in enumerate(run.spectra.get(when, {}).get("layers", ())):
                yield run, when, number, layer


def make_cdf_figure(curves: pd.DataFrame, reach: pd.DataFrame) -> StudyFigure:
    """Make a grid of cumulative curves: a column for each task, rows before training, after it, and with SoftDecay.

    Args:
        curves: the table of `tabulate_cdf`.
        reach: the table of `tabulate_reach`, for ΔL of the last layer in the titles.
    """
    caption = (
        "Share of singular values of a sequence at or below σ/σ₁ by layer, on validation rows, before and after "
        "training and with SoftDecay (Figs. 5 and 8 to 13); ΔL is where the last layer's curve reaches 0.8, mean over "
        "seeds."
    )
    return make_figure("glue-cdf", caption, partial(_draw_grid, curves, reach), width=PAGE_WIDTH, height=5.2)


def _draw_grid(curves: pd.DataFrame, reach: pd.DataFrame, figure: Figure) -> None:
    if curves.empty:
        raise InputError("the runs have no spectra of single layers; version 0.1 wrote them, so train them again")
    tasks, layers = list(dict.fromkeys(curves["task"])), sorted(set(curves["layer"]))
    grid = figure.subplots(len(_TITLES), len(tasks), squeeze=False, sharex=True, sharey=True)
    for (when, name), panels in zip(_TITLES, grid, strict=True):
        for task, axes in zip(tasks, panels, strict=True):
            method = _find_method(curves[curves["task"] == task], name)
            rows = curves[(curves["task"] == task) & (curves["when"] == when) & (curves["method"] == method)]
            for layer, colour in zip(layers, layer_colours(len(layers)), strict=True):
                line = rows[rows["layer"] == layer]
                axes.plot(line["value"], line["share"], color=colour, linewidth=0.8)
            axes.axhline(_SHARE, color=GREY, linewidth=0.5)
            at = _select_last(reach, task, method, when)
            label = f", ΔL {at['reach'].mean():.3f}" if len(at) else ""
            axes.set_title(f"{task}{label}", fontsize=SMALL_FONT_SIZE)
        panels[0].set_ylabel(_TITLES[when, name])
    for axes in grid[-1]:
        axes.set_xlabel("σ/σ₁")
    add_layer_bar(figure, grid, [str(layer) for layer in layers])


def _find_method(rows: pd.DataFrame, name: str) -> str | None:
    """The first method of a family: SoftDecay is trained with several α."""
    return next((str(method) for method in dict.fromkeys(rows["method"]) if family(str(method)) == name), None)


def _select_last(reach: pd.DataFrame, task: str, method: str | None, when: str) -> pd.DataFrame:
    rows = reach[(reach["task"] == task) & (reach["method"] == method) & (reach["when"] == when)]
    last: pd.DataFrame = rows[rows["layer"] == rows["layer"].max()]
    return last


def judge_spectra(model: str, reach: pd.DataFrame, sizes: Mapping[str, int]) -> list[Claim]:
    """Whether SoftDecay flattens the last layer's curve, and larger training sets give a smaller ΔL, over seeds.

    Args:
        model: the name of the model.
        reach: the table of `tabulate_reach`.
        sizes: the number of training rows of each task.
    """
    claims = []
    for task in dict.fromkeys(reach["task"]):
        method = _find_method(reach[reach["task"] == task], "softdecay")
        plain, repaired = (_select_last(reach, task, name, "trained").set_index("seed") for name in (BASE, method))
        change = (repaired["reach"] - plain["reach"]).dropna()
        if change.empty:
            continue
        text = (
            f"ΔL of the last layer of {model} trained on {task} is {plain['reach'].mean():.3f}, and "
            f"{repaired['reach'].mean():.3f} with {method}, seeds: {len(change)}; the paper: SoftDecay flattens it."
        )
        claims.append(_judge_change(text, "Figs. 5 and 9 to 13", change, model))
    known = [task for task in sizes if task in set(reach["task"])]
    if len(known) > 1:
        large, small = max(known, key=sizes.__getitem__), min(known, key=sizes.__getitem__)
        trained = reach[(reach["method"] == BASE) & (reach["when"] == "trained") & (reach["layer"] > 0)]
        by = trained.pivot_table(index="seed", columns="task", values="reach")
        text = (
            f"ΔL of {model}, mean over layers, is {by[large].mean():.3f} after training on {large} ({sizes[large]:,} "
            f"rows) and {by[small].mean():.3f} on {small} ({sizes[small]:,}); the paper: smaller on the larger set."
        )
        claims.append(_judge_change(text, "Fig. 8", (by[small] - by[large]).dropna(), model))
    return claims


def _judge_change(text: str, where: str, change: pd.Series[float], model: str) -> Claim:
    """Judge the claim that a number grows, given its change for each seed."""
    low, high = seeds_interval(change)
    evidence = f"95 % interval over seeds {low:+.3f} to {high:+.3f}"
    return Claim(judge_interval(low, high), text, where, float(change.mean()), evidence=evidence, model=model)
