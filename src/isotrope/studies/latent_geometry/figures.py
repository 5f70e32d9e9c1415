"""Figures of the latent-geometry study: noise and scores, measures against scores, correlations, the sample."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLACK, COLOURS, GREY, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.figures.measure_correlations import draw_matrix
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.latent_geometry.decay import FEWEST_LEVELS, fit_decay, fit_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns of the page of all measures.
_COLUMNS = 4

#: The measures of Fig. 6, and those of Figs. 9 to 11 by quantizer.
FIG_6 = ("reconstruction_skew_additive", "centroid_variance_additive", "cluster_eee_additive", "eee")


def make_noise_figure(scored: pd.DataFrame, by: str) -> StudyFigure:
    """Fig. 1: the score against the share of noise, with the exponential and the line.

    Args:
        scored: a row for each changed model, with the columns `level`, `glue` and `by`.
        by: the column that tells colours apart; both curves are those of its first value.
    """
    title = "Mean score by share of noise on the weights, medians over seeds, with the fitted exponential (Fig. 1)."
    return make_figure("noise", title, partial(_draw_noise, scored, by), width=PAGE_WIDTH, height=2.6)


def _draw_noise(scored: pd.DataFrame, by: str, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    noisy = scored.dropna(subset=["glue", "level"])
    for (kind, group), colour in zip(noisy.groupby(by, sort=False), COLOURS, strict=False):
        median = group.groupby("level")["glue"].median()
        for axes in panels:
            axes.scatter(group["level"], 100 * group["glue"], s=5, color=colour, alpha=0.4, linewidths=0)
            label = str(kind) if axes is panels[0] else None
            axes.plot(median.index, 100 * median, ".", color=colour, markersize=5, label=label)
    first = noisy[noisy[by] == noisy[by].iloc[0]]
    if first["level"].nunique() >= FEWEST_LEVELS:
        grid = np.append(0.0, np.geomspace(1e-3, first["level"].max(), 200))
        for fitted, style, name in (
            (fit_decay(first["level"], first["glue"]), "-", "exponential"),
            (fit_line(first["level"], first["glue"]), "--", "line"),
        ):
            for axes in panels:
                label = f"{name}, R² {fitted.r2:.3f}" if axes is panels[0] else None
                axes.plot(grid, 100 * fitted.predict(grid), style, color=GREY, linewidth=0.9, label=label)
    panels[1].set_xscale("symlog", linthresh=0.01)
    panels[1].set_xlim(left=-0.001)
    for axes in panels:
        axes.xaxis.set_major_formatter("{x:g}")  # the default of a logarithmic scale is not text
        axes.set_xlabel("share of noise")
    panels[0].set_ylabel("mean score × 100")
    figure.legend(loc="outside lower center", ncols=5)


def list_measure_figures(models: pd.DataFrame, measures: Sequence[str]) -> list[StudyFigure]:
    """Figs. 6 and 9 to 11: the score against each measure, medians over seeds joined in the order of noise.

    Args:
        models: a row for each model, with the columns `architecture`, `other` (not made by noise), `glue`, `level` and
            the measures.
        measures: all measures.
    """
    spread = [name for name in measures if not name.endswith(("additive", "product"))]
    groups = {
        "measures": ("selected measures (Fig. 6)", list(FIG_6)),
        "additive": ("the measures of the additive quantizer (Fig. 9)", [m for m in measures if "additive" in m]),
        "product": ("the measures of the product quantizer (Fig. 10)", [m for m in measures if "product" in m]),
        "spread": (
            "the measures of spread (Fig. 11)",
            spread,
        ),
    }
    what = "medians over seeds, joined as noise grows, crosses for models not made by noise."
    return [
        make_figure(
            name,
            f"Score against {title}; {what}",
            partial(_draw_measures, models, of),
            width=PAGE_WIDTH,
            height=0.5 + 1.5 * -(-len(of) // _COLUMNS),
        )
        for name, (title, of) in groups.items()
    ]


def _draw_measures(models: pd.DataFrame, measures: list[str], figure: Figure) -> None:
    names = list(dict.fromkeys(models["architecture"].dropna()))
    panels = figure.subplots(-(-len(measures) // _COLUMNS), _COLUMNS, squeeze=False, sharey=True).ravel()
    for axes, measure in zip(panels, measures, strict=False):
        for name, colour in zip(names, COLOURS, strict=False):
            of_name = models[models["architecture"] == name]
            noisy = of_name[~of_name["other"]].groupby("level")[[measure, "glue"]].median()
            others = of_name[of_name["other"]]
            label = name if measure == measures[0] else None
            axes.plot(noisy[measure], 100 * noisy["glue"], ".-", color=colour, label=label, linewidth=0.5, markersize=3)
            axes.scatter(others[measure], 100 * others["glue"], s=10, marker="x", color=colour, linewidths=0.8)
        axes.set_title(measure.replace("_", " "), fontsize=SMALL_FONT_SIZE - 1)  # the longest just fits its panel
    for axes in panels[len(measures) :]:
        axes.set_axis_off()
    figure.supylabel("score × 100", fontsize=SMALL_FONT_SIZE)
    figure.legend(loc="outside lower center", ncols=len(names))


def make_matrix_figure(matrix: pd.DataFrame) -> StudyFigure:
    """Fig. 8: correlations between the measures."""
    title = "Pearson's r between the measures (Fig. 8); columns go by the numbers of the rows."
    return make_figure(
        "matrix", title, partial(_draw_matrix, matrix), width=PAGE_WIDTH, height=0.6 + 0.16 * len(matrix)
    )


def _draw_matrix(matrix: pd.DataFrame, figure: Figure) -> None:
    draw_matrix(figure, matrix.drop(columns="measure").to_numpy(float), list(matrix["measure"]), "r", shrink=0.6)


def make_sample_figure(curves: pd.DataFrame) -> StudyFigure:
    """Fig. 2: frequencies of words, pairs of words and lengths in the text and in ten samples.

    Args:
        curves: the columns `sample` (0 for the text), `what`, `at` and `share`.
    """
    title = "Frequencies of words and pairs by rank, and of lengths, in the text and in ten samples of it (Fig. 2)."
    return make_figure("sample", title, partial(_draw_sample, curves), width=PAGE_WIDTH)


def _draw_sample(curves: pd.DataFrame, figure: Figure) -> None:
    panels = {"words": "rank of the word", "pairs": "rank of the pair", "lengths": "tokens of the sequence"}
    for axes, (what, label) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for number, curve in curves[curves["what"] == what].sort_values("at").groupby("sample", sort=False):
            colour, width, order = (BLACK, 1.2, 3) if number == 0 else (COLOURS[0], 0.5, 2)
            named = {0: "the text", 1: "samples"}.get(int(str(number))) if what == "words" else None
            axes.plot(curve["at"], curve["share"], color=colour, linewidth=width, zorder=order, label=named)
        if what != "lengths":
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.set_xlabel(label)
    figure.axes[0].set_ylabel("share")
    figure.legend(loc="outside lower center", ncols=2)
