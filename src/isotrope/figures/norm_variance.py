"""Norm, norm of the mean and variance of token types: against each other, against frequency, and as histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.robust_limits import compute_robust_range, is_inside, limit_axes, write_note
from isotrope.drawing.style import BLUE, GREY, format_token
from isotrope.figures.record import YAMAGIWA, register_figure
from isotrope.figures.run_data import RunData
from isotrope.figures.token_scatter import draw_trend, label_points, select_tokens
from isotrope.measures.norm_variance import regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Bars of a histogram, layers whose outlines can be told apart, and layers that fit below each other on a page.
_BARS, _OUTLINES, _ROWS = 40, 7, 5


def _label_axes(run: RunData, axes: Axes) -> None:
    axes.set_xlabel(f"M, squared norm of the mean (layer {run.layer_name(run.layer)})")
    axes.set_ylabel("V, variance")


@register_figure(
    "norm-variance",
    shows=(
        "Variance V of each token type's embeddings against the squared norm M of their mean, in one layer, with the "
        "least-squares line; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Fig. 2",
    needs=("tokens",),
    layer="middle",
    height=2.5,
)
def draw_norm_variance(run: RunData, figure: Figure) -> None:
    """A scatter over token types."""
    axes = figure.subplots()
    types = run.token_types(run.layer)
    draw_trend(axes, types.m, types.v, size=5, names=types.token, letters=("M", "V"))
    _label_axes(run, axes)


@register_figure(
    "norm-variance-tokens",
    page=True,
    shows=(
        "Variance against the squared norm of the mean for token types chosen over all frequencies, by name, among all "
        "others, with the least-squares line of all."
    ),
    answers=f"{YAMAGIWA}, Fig. 8",
    needs=("tokens",),
    layer="middle",
    height=4.6,
)
def draw_norm_variance_tokens(run: RunData, figure: Figure) -> None:
    """A pale scatter of all types, and names on the chosen ones."""
    axes = figure.subplots()
    types = run.token_types(run.layer)
    line = regression(types.m, types.v)
    axes.scatter(types.m, types.v, s=5, color=GREY, alpha=0.25, linewidth=0, rasterized=True)
    ends = np.array([types.m.min(), types.m.max()])
    axes.plot(ends, types.v.mean() + line.slope * (ends - types.m.mean()), color=GREY)
    chosen = select_tokens(types, run.seed)
    axes.scatter(types.m[chosen], types.v[chosen], s=12, color=BLUE, zorder=3)
    note = limit_axes(axes, types.m, types.v, types.token, letters=("M", "V"), unit="types")
    write_note(axes, note)
    _label_axes(run, axes)
    if note:
        near = [is_inside(values, compute_robust_range(values)) for values in (types.m, types.v)]
        chosen = chosen[(near[0] & near[1])[chosen]]
    points = np.column_stack([types.m[chosen], types.v[chosen]])
    label_points(axes, points, [format_token(types.token[i]) for i in chosen])


@register_figure(
    "frequency",
    page=True,
    shows=(
        "Q, M and V of each token type against the logarithm of its frequency, in one layer, with least-squares "
        "lines; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Fig. 7",
    needs=("tokens",),
    layer="middle",
)
def draw_frequency(run: RunData, figure: Figure) -> None:
    """Three scatters over token types."""
    types = run.token_types(run.layer)
    panels = figure.subplots(1, 3, sharey=True)
    ranges = [compute_robust_range(values) for values in (types.q, types.m, types.v)]
    shared = min(low for low, _ in ranges), max(high for _, high in ranges)
    for axes, values, letter in zip(panels, (types.q, types.m, types.v), "QMV", strict=True):
        draw_trend(axes, np.log10(types.n), values, names=types.token, letters=("log₁₀ n", letter), y_range=shared)
        axes.set_xlabel("log₁₀ n")
        axes.set_ylabel(f"{letter} (layer {run.layer_name(run.layer)})")


@register_figure(
    "frequency-layers",
    page=True,
    shows=(
        "log₁₀(1 + Q), log₁₀(1 + M) and log₁₀(1 + V) of each token type against the logarithm of its frequency, and V "
        "against M, from the first layer (top) to the last, with least-squares lines."
    ),
    answers=f"{YAMAGIWA}, Figs. 11 to 13",
    needs=("tokens",),
    height=7.6,
)
def draw_frequency_layers(run: RunData, figure: Figure) -> None:
    """A row of four scatters for each layer."""
    layers = run.select_layers(_ROWS)
    grid = figure.subplots(len(layers), 4, squeeze=False)
    for row, layer in zip(grid, layers, strict=True):
        types = run.token_types(layer)
        for axes, values, letter in zip(row, (types.q, types.m, types.v), "QMV", strict=False):
            draw_trend(axes, np.log10(types.n), np.log10(1 + values), size=2)
            axes.set_xlabel("log₁₀ n" if layer == layers[-1] else "")
            axes.set_ylabel(f"log₁₀(1 + {letter})")
        draw_trend(row[3], types.m, types.v, size=2, letters=("M", "V"))
        row[3].set_xlabel("M" if layer == layers[-1] else "")
        row[3].set_ylabel("V")
        row[0].annotate(
            f"layer {run.layer_name(layer)}",
            (0, 0.5),
            xytext=(-38, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="center",
            fontweight="bold",
        )


@register_figure(
    "norm-histograms",
    page=True,
    shows=(
        "Distribution over token types of the logarithms of the mean squared norm Q, the squared norm of the mean M "
        "and the variance V, in up to seven layers from the first to the last; types with 10 to 100,000 occurrences."
    ),
    answers=f"{YAMAGIWA}, Figs. 14 to 16",
    needs=("tokens",),
    height=2.2,
)
def draw_norm_histograms(run: RunData, figure: Figure) -> None:
    """Outlines of histograms, one for each layer; logarithms, because layers differ widely in length."""
    panels = figure.subplots(1, 3, sharey=True)
    layers = run.select_layers(_OUTLINES)
    by_layer = [run.token_types(layer) for layer in layers]
    for axes, letter in zip(panels, "QMV", strict=True):
        columns = [np.log10(1 + getattr(types, letter.lower())) for types in by_layer]
        edges = np.linspace(min(map(np.min, columns)), max(map(np.max, columns)), _BARS + 1)
        if edges[0] == edges[-1]:
            edges = np.linspace(edges[0] - 0.5, edges[0] + 0.5, _BARS + 1)
        for column, colour in zip(columns, layer_colours(len(columns)), strict=True):
            axes.stairs(np.histogram(column, edges)[0] / len(column), edges, color=colour, linewidth=0.9)
        axes.set_xlabel(f"log₁₀(1 + {letter})")
    panels[0].set_ylabel("share of token types")
    add_layer_bar(figure, panels, [run.layer_name(layer) for layer in layers])
