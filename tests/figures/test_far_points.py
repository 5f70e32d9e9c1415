"""A few massive tokens do not stretch the axes of a figure, and the figure says what lies outside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from isotrope.drawing.robust_limits import compute_robust_range, limit_axes
from isotrope.figures import draw, save
from isotrope.readings.selected_measures import resolve_measures
from isotrope.runs.run import Run
from isotrope.scanner import scan_source
from isotrope.sources.batch import Rows
from testkit.known_run import KnownSource

FAR = 1e4


@pytest.fixture(scope="module")
def massive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 token types with rows of length about 3, and two of length about 10,000, as the first token of SmolLM2."""
    rng = np.random.default_rng(5)
    counts = np.concatenate([[40, 40], rng.integers(12, 30, size=150)])
    token = rng.permutation(np.repeat(np.arange(152), counts))[: counts.sum() // 31 * 31]
    words = rng.normal(size=(152, 6)) + 1.0
    words[:2] = FAR * np.array([[1.0, 0.1, 0, 0, 0, 0], [1.2, 0, 0.1, 0, 0, 0]])
    spread = np.where(token < 2, FAR / 50, 0.3)[:, None]
    rows = {layer: words[token] + spread * rng.normal(size=(len(token), 6)) for layer in range(3)}
    known = Rows(
        np.repeat(np.arange(len(token) // 31, dtype=np.uint64), 31),
        token.astype(np.int64),
        np.tile(np.arange(31), len(token) // 31),
        np.zeros(len(token), dtype=bool),
    )
    names = ["<start>", "<new>", *(f"word{i}" for i in range(150))]
    folder = tmp_path_factory.mktemp("massive") / "run"
    scan_source(
        KnownSource(rows, known, names), resolve_measures("moments,tokens,sequences", sample=2_000), run=Run(folder)
    )
    return folder


def _filled(figure: Figure) -> float:
    """The share of the first axes' width that the inner nine tenths of the points fill."""
    axes = figure.axes[0]
    figure.draw_without_rendering()
    x = np.concatenate(
        [np.asarray(marks.get_offsets())[:, 0] for marks in axes.collections if isinstance(marks, PathCollection)]
    )
    low, high = axes.get_xlim()
    return float((np.quantile(x, 0.95) - np.quantile(x, 0.05)) / (high - low))


@pytest.mark.parametrize("name", ["norm-variance", "norm-variance-tokens"])
def test_two_massive_types_leave_room_for_the_others(name: str, massive: Path) -> None:
    figure = draw(massive, name)
    assert _filled(figure) > 0.3
    title = " ".join(figure.axes[0].get_title().split())
    assert "outside: 2 of 152 types" in title
    assert "“<new>” at M 1.4" in title
    assert "“<start>” at M 1.0" in title
    assert re.search(r"M 1\.\d+e\+08", title)


def test_axes_that_are_shared_keep_all_that_is_near(massive: Path) -> None:
    figure = draw(massive, "frequency")
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_ylim()[1] < 1_000
    assert all("outside: 2 of 152 types" in " ".join(axes.get_title().split()) for axes in figure.axes)


@pytest.mark.parametrize("name", ["pca", "token-clouds"])
def test_clouds_of_rows_are_not_a_dot(name: str, massive: Path, tmp_path: Path) -> None:
    figure = draw(massive, name)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_xlim()[1] - axes.get_xlim()[0] < 100
    assert "outside" in axes.get_title()
    save(figure, tmp_path / "cloud.png")


def test_more_than_a_few_far_points_stay_inside() -> None:
    """A fifth may lie outside, as where every text begins with a massive token; more are a part of the picture."""
    near = np.random.default_rng(0).uniform(size=80)
    for far, expected in ((20, near.max()), (40, 1e6)):
        assert compute_robust_range(np.append(near, np.full(far, 1e6)))[1] == expected


def test_without_far_points_nothing_changes() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=500), rng.uniform(size=30), rng.lognormal(size=400), np.ones(50), np.arange(3.0)):
        assert compute_robust_range(values) == (values.min(), values.max())
    axes = Figure().subplots()
    x, y = rng.normal(size=(2, 200))
    axes.scatter(x, y)
    before = axes.get_xlim(), axes.get_ylim()
    assert limit_axes(axes, x, y) == ""
    assert (axes.get_xlim(), axes.get_ylim()) == before


@pytest.mark.parametrize(
    ("far", "marker", "note"), [((1e6, 0.5), ">", "x 1e+06, y 0.5"), ((0.5, -1e6), "v", "y −1e+06")]
)
def test_triangles_point_to_what_lies_outside(far: tuple[float, float], marker: str, note: str) -> None:
    x, y = np.random.default_rng(0).uniform(size=(2, 100))
    x[7], y[7] = far
    axes: Any = Figure().subplots()
    axes.scatter(x, y)
    said = limit_axes(axes, x, y)
    assert said.startswith("1 of 100 points outside, the farthest at ")
    assert note in said
    assert [line.get_marker() for line in axes.lines] == [marker]
    low, high = axes.get_xlim()
    assert -0.2 < low < high < 1.2 or marker == "v"
