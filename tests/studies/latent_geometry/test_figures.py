"""What the figures draw: points, lines and names are those of the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats
from test_published_models import FOLDER

from isotrope.studies.figures import StudyFigure
from isotrope.studies.latent_geometry.figures import (
    FIG_6,
    list_measure_figures,
    make_noise_figure,
    make_sample_figure,
)
from isotrope.studies.latent_geometry.published import TABLE_2, read_models
from isotrope.studies.latent_geometry.regression import PATCHINESS, fit, split_models
from isotrope.studies.latent_geometry.regression_figures import make_lines_figure, make_named_figure
from isotrope.studies.representative_sample import count_frequencies, list_curves


@pytest.fixture(scope="module")
def models() -> pd.DataFrame:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    return read_models(FOLDER)


def draw(figure: StudyFigure) -> Figure:
    drawn = figure.draw()
    drawn.draw_without_rendering()
    return drawn


def test_figure_1_has_the_medians_of_all_levels(models: pd.DataFrame) -> None:
    perturbed, _ = split_models(models)
    figure = draw(make_noise_figure(perturbed, "architecture"))
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    small = perturbed[perturbed["architecture"] == "BERT-small"]
    levels = sorted(small["level"].unique())
    assert list(lines["BERT-small"].get_xdata()) == levels
    expected = [100 * np.median(small["glue"][small["level"] == level]) for level in levels]
    np.testing.assert_allclose(lines["BERT-small"].get_ydata(), expected)
    assert {"exponential, R² 0.987", "line, R² 0.465"} <= set(lines)


def test_figure_2_has_the_corpus_and_each_sample() -> None:
    rows = [{"sample": 0} | row for row in list_curves(count_frequencies(["a b a c", "a b d"]))]
    rows += [{"sample": 1} | row for row in list_curves(count_frequencies(["a b a c"]))]
    figure = draw(make_sample_figure(pd.DataFrame(rows)))
    words, pairs, lengths = figure.axes
    assert [list(line.get_xdata()) for line in words.lines] == [[1, 2, 3, 4], [1, 2, 3]]
    np.testing.assert_allclose(words.lines[0].get_ydata(), [3 / 7, 2 / 7, 1 / 7, 1 / 7])
    np.testing.assert_allclose(pairs.lines[0].get_ydata(), [2 / 5, 1 / 5, 1 / 5, 1 / 5])
    assert list(lengths.lines[0].get_xdata()) == [3, 4]


def test_figure_3_has_a_line_and_r_for_each_architecture(models: pd.DataFrame) -> None:
    made = make_lines_figure(models)
    assert "r = 0.902 for BERT-small" in made.title
    assert "r = 0.640 for RoBERTa" in made.title
    axes = draw(made).axes[0]
    perturbed, _ = split_models(models)
    for line, name in zip(axes.lines, dict.fromkeys(perturbed["architecture"]), strict=True):
        group = perturbed[perturbed["architecture"] == name]
        theirs = stats.linregress(group[PATCHINESS], group["glue"])
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        np.testing.assert_allclose(y, 100 * (theirs.intercept + theirs.slope * x))
    medians = perturbed.groupby(["architecture", "level"]).ngroups
    assert sum(len(points.get_offsets()) for points in axes.collections) == medians


def test_figure_5_names_all_13_models_and_has_the_lines_of_the_fit(models: pd.DataFrame) -> None:
    axes = draw(make_named_figure(models)).axes[0]
    _, others = split_models(models)
    assert {text.get_text() for text in axes.texts} == set(others["model"])
    assert len(others) == 13
    fitted = fit(split_models(models)[0], [PATCHINESS, "architecture"])
    for line, name in zip(axes.lines, dict.fromkeys(split_models(models)[0]["architecture"]), strict=True):
        ends = pd.DataFrame({PATCHINESS: line.get_xdata(), "architecture": name})
        np.testing.assert_allclose(line.get_ydata(), 100 * fitted.predict(ends))


def test_figures_6_and_9_to_11_have_all_measures_as_medians(models: pd.DataFrame) -> None:
    made = {figure.name: figure for figure in list_measure_figures(models, list(TABLE_2))}
    assert list(made) == ["measures", "additive", "product", "spread"]
    drawn = {name: draw(figure) for name, figure in made.items()}
    titles = {
        name: [axes.get_title().replace(" ", "_") for axes in figure.axes if axes.get_title()]
        for name, figure in drawn.items()
    }
    assert titles["measures"] == list(FIG_6)
    assert [*titles["additive"], *titles["product"], *titles["spread"]] == list(TABLE_2)
    panel = drawn["measures"].axes[titles["measures"].index("eee")]
    small = models[(models["architecture"] == "BERT-small") & ~models["other"]].dropna(subset=["eee"])
    by = [(np.median(g["eee"]), 100 * np.median(g["glue"])) for _, g in small.groupby("level")]
    np.testing.assert_allclose(panel.lines[0].get_xydata(), by)
