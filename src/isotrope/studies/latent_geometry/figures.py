"""Figures of the latent-geometry study: noise and scores, measures against scores, residuals, correlations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isotrope.drawing.style import COLOURS, GREY, ORANGE, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.figures.measure_correlations import draw_matrix
from isotrope.studies.figures import StudyFigure, make_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns of the page of all measures.
_COLUMNS = 4


def draw_noise(changed: pd.DataFrame, figure: Figure) -> None:
    """Draw the score against the share of noise, one row of the table for each changed model (Fig. 1)."""
    axes = figure.subplots()
    noisy = changed.dropna(subset=["glue", "level"])
    for (kind, group), colour in zip(noisy.groupby("kind", sort=False), COLOURS, strict=False):
        axes.scatter(group["level"], 100 * group["glue"], s=10, color=colour, label=kind)
        median = group.groupby("level")["glue"].median()
        if len(median) > 1:
            axes.plot(median.index, 100 * median, color=colour, linewidth=0.9)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(left=-0.001)
    axes.xaxis.set_major_formatter("{x:g}")  # the default of this scale is not text
    axes.set_xlabel("share of noise")
    axes.set_ylabel("mean score × 100")
    axes.legend()


def make_measures_figure(models: pd.DataFrame, measures: list[str]) -> StudyFigure:
    """Figs. 3, 5, 6 and 9 to 11: every measure against the score.

    Args:
        models: a row for each model, with the columns `architecture`, `other` (not made by noise), `glue` and the
            measures.
        measures: the columns to show.
    """
    title = "Score against each measure; a colour for each architecture, crosses for models not made by noise."
    height = 1.4 * -(-len(measures) // _COLUMNS)
    return make_figure("measures", title, partial(_draw_measures, models, measures), width=PAGE_WIDTH, height=height)


def _draw_measures(models: pd.DataFrame, measures: list[str], figure: Figure) -> None:
    names = list(dict.fromkeys(models["architecture"].dropna()))
    panels = figure.subplots(-(-len(measures) // _COLUMNS), _COLUMNS, squeeze=False).ravel()
    for axes, measure in zip(panels, measures, strict=False):
        for name, colour in zip(names, COLOURS, strict=False):
            for other, marker in ((False, "."), (True, "x")):
                group = models[(models["architecture"] == name) & (models["other"] == other)]
                label = name.rpartition("/")[2] if not other and measure == measures[0] else None
                axes.scatter(group[measure], 100 * group["glue"], s=8, marker=marker, color=colour, label=label, lw=0.8)
        axes.set_title(measure.replace("_", " "), fontsize=SMALL_FONT_SIZE - 1)  # the longest just fits its panel
    for axes in panels[len(measures) :]:
        axes.set_axis_off()
    figure.supylabel("score × 100", fontsize=SMALL_FONT_SIZE)
    figure.legend(loc="outside lower center", ncols=len(names))


def make_residuals_figure(residuals: pd.DataFrame) -> StudyFigure:
    """Fig. 4: residuals without and with the architecture."""
    title = "Residuals of the regressions on point patchiness, without and with the architecture (Fig. 4)."
    return make_figure("residuals", title, partial(_draw_residuals, residuals), width=PAGE_WIDTH, height=2.2)


def _draw_residuals(residuals: pd.DataFrame, figure: Figure) -> None:
    for axes, label in zip(figure.subplots(1, 2, sharey=True), ("alone", "architecture"), strict=True):
        expected = residuals["glue"] - residuals[f"residual_{label}"]
        for (name, group), colour in zip(residuals.groupby("architecture", sort=False), COLOURS, strict=False):
            named = str(name).rpartition("/")[2] if label == "alone" else None
            axes.scatter(100 * expected[group.index], 100 * group[f"residual_{label}"], s=8, color=colour, label=named)
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        axes.set_title("without the architecture" if label == "alone" else "with the architecture")
        axes.set_xlabel("expected score × 100")
    figure.axes[0].set_ylabel("residual × 100")
    figure.legend(loc="outside lower center", ncols=3)


def make_matrix_figure(matrix: pd.DataFrame) -> StudyFigure:
    """Fig. 8: correlations between the measures."""
    title = "Pearson's r between the measures (Fig. 8); columns go by the numbers of the rows."
    return make_figure(
        "matrix", title, partial(_draw_matrix, matrix), width=PAGE_WIDTH, height=0.6 + 0.16 * len(matrix)
    )


def _draw_matrix(matrix: pd.DataFrame, figure: Figure) -> None:
    draw_matrix(figure, matrix.drop(columns="measure").to_numpy(float), list(matrix["measure"]), "r", shrink=0.6)


def draw_sample(samples: pd.DataFrame, figure: Figure) -> None:
    """Draw the distance of ten samples to the corpus, one row of the table for each (Fig. 2)."""
    axes = figure.subplots()
    for x, name in enumerate(("words", "pairs", "lengths")):
        axes.scatter([x] * len(samples), samples[name], s=10, color=COLOURS[0])
        axes.scatter([x], [samples[name].iloc[0]], s=24, color=ORANGE, marker="x")
    axes.set_xticks(range(3), ["words", "pairs of words", "lengths"])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("total variation distance")
