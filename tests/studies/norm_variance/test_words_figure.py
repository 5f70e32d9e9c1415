"""Fig. 22: words as points, coloured by their number of tokens."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy import stats

from isotrope.drawing.style import COLOURS
from isotrope.errors import InputError
from isotrope.studies.norm_variance.words import MANY, draw_words, select_words


def make_words() -> pd.DataFrame:
    """Words of one to six tokens in three layers; one occurs too rarely and one too often."""
    rng = np.random.default_rng(0)
    rows = []
    for layer in ("0", "1", "2"):
        for i in range(60):
            tokens = 1 + i % 6
            q, m = rng.uniform(50, 100, size=2)
            n = 9 if i == 0 else 100_001 if i == 1 else int(rng.integers(10, 5000))
            rows.append({"layer": layer, "token": " ".join(["x"] * tokens), "n": n, "Q": q + m, "M": m, "V": q})
    return pd.DataFrame(rows)


def test_words_are_points_of_their_table() -> None:
    words = select_words(make_words())
    assert len(words) == 3 * 58
    assert words["tokens"].tolist() == [min(len(name.split()), MANY) for name in words["token"]]
    figure = Figure()
    draw_words(words, [0, 2], figure)
    grid = np.reshape(figure.axes, (2, 4))
    for row, layer in zip(grid, ("0", "2"), strict=True):
        here = words[words["layer"] == layer]
        for axes, (x, y) in zip(row, (("n", "Q"), ("n", "M"), ("n", "V"), ("M", "V")), strict=True):
            across = np.log10(here[x]) if x == "n" else here[x]
            for count, points in zip((1, 2, 3, 4), axes.collections, strict=True):
                some = here["tokens"] == count
                assert np.asarray(points.get_offsets()) == pytest.approx(
                    np.column_stack([across[some], here[y][some]])  # plain values, not logarithms
                )
                assert tuple(points.get_facecolor()[0][:3]) == to_rgba(COLOURS[count - 1])[:3]
            line = stats.linregress(across, here[y])
            at, height = axes.lines[0].get_data()
            assert np.asarray(height) == pytest.approx(line.intercept + line.slope * np.asarray(at))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["1", "2", "3", "4 or more"]


def test_too_few_words_are_not_drawn() -> None:
    with pytest.raises(InputError, match="fewer than three words"):
        draw_words(select_words(make_words().head(2)), [0], Figure())
