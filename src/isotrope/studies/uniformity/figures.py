"""Figures of the uniformity study: the bound, repairs, sentence pairs on planes, GLUE, and parts switched off."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isotrope.drawing.style import BLUE, COLOURS, GREY, ORANGE, PAGE, SMALL
from isotrope.studies.figures import StudyFigure, make_figure, make_layer_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Figures of a run that correspond to those of the paper.
RUN_FIGURES = ("sequence-spectra", "spectrum-histograms", "uniformity", "softdecay-spectra")


def make_bound_figure(frame: pd.DataFrame) -> StudyFigure:
    """The theorem: how much of the bound is slack, by layer and directions kept."""
    title = "Share of the theorem's bound that is slack, by layer, for one, a quarter and half of the directions kept."
    return make_layer_figure("bound", title, frame, "directions", "slack", "slack of the bound")


def make_disabled_parts_figure(frame: pd.DataFrame) -> StudyFigure:
    """Rank-one residual by layer with and without skip connections and MLPs."""
    title = "Rank-one residual by layer, of the whole model, and without skip connections, MLPs, or both."
    return make_layer_figure("parts_off", title, frame, "model", "rank_one_residual", "rank-one residual")


def make_sts_figure(scores: pd.DataFrame) -> StudyFigure:
    """Table 1: Spearman of each repair on each set, with intervals."""
    names = [name for name in dict.fromkeys(scores["set"]) if "." not in name]
    title = "Spearman × 100 on each set, raw and repaired, with 95 % intervals (Table 1)."
    fill = partial(_draw_scores, scores[scores["set"].isin(names)], "set", "repair", "spearman")
    return make_figure("sts", title, fill, width=PAGE, height=2.6)


def make_glue_figure(scores: pd.DataFrame) -> StudyFigure:
    """Tables 2 and 6: the mean score of each method on each task."""
    lines = scores.assign(line=scores["task"] + " " + scores["metric"])
    title = "Scores × 100 by task and method, with 95 % intervals over seeds (Tables 2 and 6)."
    return make_figure("glue", title, partial(_draw_scores, lines, "line", "method", "mean"), width=PAGE, height=2.6)


def _draw_scores(frame: pd.DataFrame, by: str, of: str, column: str, figure: Figure) -> None:
    """Draw a group for each value of `by`, and in it a point with its interval for each value of `of`."""
    axes = figure.subplots()
    groups, kinds = list(dict.fromkeys(frame[by])), list(dict.fromkeys(frame[of]))
    for number, kind in enumerate(kinds):
        some = frame[frame[of] == kind].set_index(by)
        at = [groups.index(group) + 0.7 * ((number + 0.5) / len(kinds) - 0.5) for group in some.index]
        colour = COLOURS[number % len(COLOURS)]
        axes.vlines(at, some["low"].astype(float), some["high"].astype(float), color=colour, linewidth=0.8)
        marker = "os^Dv"[number // len(COLOURS) % 5]
        axes.scatter(at, some[column].astype(float), s=9, color=colour, marker=marker, label=kind)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 4 else 0)
    axes.set_ylabel("score × 100")
    figure.legend(loc="outside right center", fontsize=SMALL)


def make_pairs_figure(planes: pd.DataFrame) -> StudyFigure:
    """Figs. 4 and 7: both sentences of each pair by t-SNE, with a line between them."""
    title = (
        "Sentence pairs by t-SNE, raw and repaired; the two sentences of a pair have two colours and a line between."
    )
    return make_figure("tsne", title, partial(_draw_pairs, planes), width=PAGE, height=2.5)


def _draw_pairs(planes: pd.DataFrame, figure: Figure) -> None:
    names = list(dict.fromkeys(planes["repair"]))
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False).flat, names, strict=True):
        some = planes[planes["repair"] == name]
        first, second = (some[some["sentence"] == side].sort_values("pair") for side in (1, 2))
        axes.plot([first["x"], second["x"]], [first["y"], second["y"]], color=GREY, linewidth=0.2, zorder=1)
        for side, colour in ((first, BLUE), (second, ORANGE)):
            axes.scatter(side["x"], side["y"], s=2.5, linewidth=0, color=colour, zorder=2)
        axes.set_title("raw" if name == "none" else name)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()  # its directions and distances mean nothing


def make_sizes_figure(frame: pd.DataFrame) -> StudyFigure:
    """ΔL after training on more and more rows."""
    title = "ΔL after training by number of training rows, dashed before training."
    return make_figure("sizes", title, partial(_draw_sizes, frame))


def _draw_sizes(frame: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for (task, some), colour in zip(frame.groupby("task", sort=False), COLOURS, strict=False):
        axes.plot(some["rows"], some["reach trained"].astype(float), marker="o", color=colour, label=str(task))
        axes.axhline(float(some["reach pretrained"].iloc[0]), color=colour, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("training rows")
    axes.set_ylabel("ΔL")
    axes.legend()
