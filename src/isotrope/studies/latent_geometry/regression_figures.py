"""Figures of the regressions on one measure: lines with r, named models, and residuals (Figs. 3, 4, 5 and 7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from isotrope.drawing.style import COLOURS, GREY, PAGE_WIDTH
from isotrope.figures.token_scatter import label_points
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.latent_geometry.regression import PATCHINESS, fit, split_models

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Models of an architecture that a line goes through.
_FEWEST = 4


def make_lines_figure(models: pd.DataFrame, measure: str = PATCHINESS) -> StudyFigure:
    """Fig. 3: medians over seeds, with one line and its r for each architecture.

    Args:
        models: a row for each model, with the columns `architecture`, `other`, `level`, `glue` and the measure.
        measure: the measure of the regressions.
    """
    perturbed = split_models(models)[0].dropna(subset=[measure])
    lines = compute_lines(perturbed, measure)
    words = ", ".join(f"r = {line[2]:.3f} for {name}" for name, line in lines.items())
    title = f"Score against {measure} with a line for each architecture (Fig. 3): {words}."
    return make_figure("lines", title, partial(_draw_lines, perturbed, measure), width=PAGE_WIDTH, height=2.8)


def compute_lines(perturbed: pd.DataFrame, measure: str) -> dict[str, tuple[float, float, float]]:
    """Intercept, slope and r of the score on a measure for each architecture with four models or more."""
    lines = {}
    for name, group in perturbed.groupby("architecture", sort=False):
        if len(group) >= _FEWEST and group[measure].nunique() > 1:
            line = stats.linregress(group[measure], group["glue"])
            lines[str(name)] = (float(line.intercept), float(line.slope), float(line.rvalue))
    return lines


def _draw_lines(perturbed: pd.DataFrame, measure: str, figure: Figure) -> None:
    axes, lines = figure.subplots(), compute_lines(perturbed, measure)
    for (name, group), colour in zip(perturbed.groupby("architecture", sort=False), COLOURS, strict=False):
        label = f"{name!s}, r = {lines[str(name)][2]:.3f}" if name in lines else str(name)
        median = group.groupby("level")[[measure, "glue"]].median()
        axes.scatter(median[measure], 100 * median["glue"], s=12, color=colour, label=label)
        if name in lines:
            intercept, slope, _ = lines[str(name)]
            ends = np.array([group[measure].min(), group[measure].max()])
            axes.plot(ends, 100 * (intercept + slope * ends), color=colour, linewidth=0.9)
    _label_axes(axes, measure)
    figure.legend(loc="outside lower center", ncols=3)


def make_named_figure(models: pd.DataFrame, measure: str = PATCHINESS) -> StudyFigure:
    """Fig. 5: the regression on a measure and the architecture, with the other models by name."""
    title = f"The regression on {measure} and the architecture, and the models that are not made by noise (Fig. 5)."
    return make_figure("others", title, partial(_draw_named, models, measure), width=PAGE_WIDTH, height=3.6)


def _draw_named(models: pd.DataFrame, measure: str, figure: Figure) -> None:
    perturbed, others = split_models(models)
    perturbed, others = perturbed.dropna(subset=[measure]), others.dropna(subset=["glue", measure])
    axes, fitted = figure.subplots(), fit(perturbed, [measure, "architecture"])
    for (name, group), colour in zip(perturbed.groupby("architecture", sort=False), COLOURS, strict=False):
        axes.scatter(group[measure], 100 * group["glue"], s=5, color=colour, alpha=0.5, linewidths=0, label=str(name))
        of_name = others[others["architecture"] == name]
        both = np.append(group[measure], of_name[measure])
        ends = group.head(1).loc[[group.index[0]] * 2].assign(**{measure: [both.min(), both.max()]})
        axes.plot(ends[measure], 100 * fitted.predict(ends), color=colour, linewidth=0.9)
        axes.scatter(of_name[measure], 100 * of_name["glue"], s=26, marker="x", color=colour, linewidths=1.2)
    axes.set_ylim(0, 100)
    _label_axes(axes, measure)
    figure.legend(loc="outside lower center", ncols=3)
    points = np.column_stack([others[measure], 100 * others["glue"]])
    label_points(axes, points, list(others["model"]))


def make_residuals_figure(residuals: pd.DataFrame, name: str, title: str) -> StudyFigure:
    """Figs. 4 and 7: residuals without and with the architecture.

    Args:
        residuals: see `isotrope.studies.latent_geometry.regression.compute_residuals`.
        name: the name of its files.
        title: what it shows.
    """
    return make_figure(name, title, partial(_draw_residuals, residuals), width=PAGE_WIDTH, height=2.4)


def _draw_residuals(residuals: pd.DataFrame, figure: Figure) -> None:
    for axes, label in zip(figure.subplots(1, 2, sharey=True), ("alone", "architecture"), strict=True):
        expected = residuals["glue"] - residuals[f"residual_{label}"]
        for (name, group), colour in zip(residuals.groupby("architecture", sort=False), COLOURS, strict=False):
            named = str(name) if label == "alone" else None
            axes.scatter(100 * expected[group.index], 100 * group[f"residual_{label}"], s=8, color=colour, label=named)
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        axes.set_title("without the architecture" if label == "alone" else "with the architecture")
        axes.set_xlabel("expected score × 100")
    figure.axes[0].set_ylabel("residual × 100")
    figure.legend(loc="outside lower center", ncols=3)


def _label_axes(axes: Axes, measure: str) -> None:
    axes.set_xlabel(measure.replace("_", " "))
    axes.set_ylabel("mean score × 100")
