"""Sampled rows: on the plane of their strongest directions, as clouds of token types, and after repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.layers import label_layers
from isotrope.drawing.projections import find_plane, project_tsne, project_uncentred
from isotrope.drawing.robust_limits import compute_robust_range, is_inside, limit_axes, write_note
from isotrope.drawing.style import AMBER, BLACK, BLUE, format_token, make_colour_map
from isotrope.errors import InputError
from isotrope.figures.record import YAMAGIWA, YAN, register_figure
from isotrope.figures.run_data import RunData
from isotrope.figures.token_scatter import label_points, select_tokens
from isotrope.measures import get
from isotrope.repairs import SoftDecay, Whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most rows of each figure, and occurrences of one token type: their number decides how long it takes.
_PCA_ROWS, _TSNE_ROWS, _LSDS_ROWS, _OCCURRENCES = 2_000, 1_000, 2_000, 100


@register_figure(
    "pca",
    page=True,
    shows=(
        "Sampled rows of the first, middle and last layer on the two strongest directions of their uncentred cloud, "
        "with the origin (×): a narrow cone lies to one side of it."
    ),
    answers="Gao et al. 2019 (representation degeneration), Fig. 1",
    needs=("sample",),
    height=2.4,
)
def draw_pca(run: RunData, figure: Figure) -> None:
    """One scatter for each of three layers, each with its own scale."""
    layers = run.select_layers(3)
    for axes, layer in zip(figure.subplots(1, len(layers), squeeze=False)[0], layers, strict=True):
        x, y = project_uncentred(run.sample(layer).values[:_PCA_ROWS].astype(np.float64)).T
        axes.scatter(x, y, s=2, color=BLUE, alpha=0.4, linewidth=0, rasterized=True)
        axes.plot(0, 0, marker="x", color=BLACK, markersize=6, markeredgewidth=1.5)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(f"layer {run.layer_name(layer)}")
        write_note(axes, limit_axes(axes, x, y, unit="rows", equal=True))
        axes.set_xlabel("first direction")
        axes.locator_params(nbins=5)
    figure.axes[0].set_ylabel("second direction")


@register_figure(
    "token-clouds",
    page=True,
    shows=(
        "Sampled occurrences of token types chosen over all frequencies, on the plane in which their means and the "
        "origin (×) spread most, coloured by frequency: types near the origin spread wider."
    ),
    answers=f"{YAMAGIWA}, Fig. 1",
    needs=("tokens", "sample"),
    layer="middle",
    height=4.6,
)
def draw_token_clouds(run: RunData, figure: Figure) -> None:
    """One cloud for each chosen type, its name at its mean."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    types, sample = run.token_types(run.layer), run.sample(run.layer)
    tokens = run.summary(run.layer).tokens
    if sample.rows.token is None or tokens is None:
        raise InputError("the rows of this run have no tokens; scan a model over a text without --pooling.")
    chosen = select_tokens(types, run.seed)
    means = tokens.means_of(types.id[chosen])
    near = is_inside(types.m, compute_robust_range(types.m))[chosen]
    directions = find_plane(means[near])
    colours = make_colour_map()
    norm = Normalize(1, max(float(np.log10(types.n.max())), 1.1))
    axes = figure.subplots()
    clouds, names, shown = [means @ directions], [types.token[i] for i in chosen], [near]
    for i, is_near in zip(chosen, near, strict=True):
        colour = colours(norm(np.log10(types.n[i])))
        here = np.flatnonzero(sample.rows.token == types.id[i])[:_OCCURRENCES]
        points = sample.values[here].astype(np.float64) @ directions
        clouds.append(points)
        shown.append(np.full(len(here), is_near))
        names += [types.token[i]] * len(here)
        axes.scatter(points[:, 0], points[:, 1], s=4, color=colour, alpha=0.4, linewidth=0, rasterized=True)
    axes.plot(0, 0, marker="x", color=BLACK, markersize=7, markeredgewidth=1.5, zorder=5)
    axes.set_xlabel(f"first direction (layer {run.layer_name(run.layer)})")
    axes.set_ylabel("second direction")
    axes.set_aspect("equal", adjustable="datalim")
    here, (x, y) = np.concatenate(shown), np.concatenate(clouds).T
    ranges = compute_robust_range(x[here]), compute_robust_range(y[here])
    write_note(axes, limit_axes(axes, x, y, names, unit="points", ranges=ranges, equal=True))
    figure.colorbar(ScalarMappable(norm, colours), ax=axes, pad=0.02, label="log₁₀ n").outline.set_visible(False)
    label_points(axes, (means @ directions)[near], [format_token(types.token[i]) for i in chosen[near]])


@register_figure(
    "tsne",
    page=True,
    shows=(
        "t-SNE of sampled rows of one layer by cosine: as they are, whitened, and after SoftDecay with its default α; "
        "coloured by the rows' position in their sequence where they have one."
    ),
    answers=f"{YAN}, Figs. 4 and 7",
    needs=("statistics", "sample"),
    layer="last",
    height=2.5,
)
def draw_tsne(run: RunData, figure: Figure) -> None:
    """Three scatters of the same rows."""
    summary, sample = run.summary(run.layer), run.sample(run.layer)
    rows = sample.values[:_TSNE_ROWS].astype(np.float64)
    position = None if sample.rows.position is None else sample.rows.position[:_TSNE_ROWS]
    spaces = {
        f"layer {run.layer_name(run.layer)}": rows,
        "whitened": Whitening().fit_moments(summary.moments).transform(rows),
        "SoftDecay": SoftDecay(form="paper").fit_moments(summary.moments).transform(rows),
    }
    colours = make_colour_map()
    panels = figure.subplots(1, len(spaces))
    for axes, (title, space) in zip(panels, spaces.items(), strict=True):
        x, y = project_tsne(space, run.seed).T
        how = {"color": BLUE} if position is None else {"c": position, "cmap": colours}
        points = axes.scatter(x, y, s=2.5, linewidth=0, rasterized=True, **how)
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()  # its directions and distances mean nothing
    if position is not None:
        top = float(np.quantile(position, 0.95))
        for axes in panels:
            axes.collections[0].set_clim(0, top)
        bar = figure.colorbar(points, ax=panels, pad=0.01, label="position in the sequence")
        bar.outline.set_visible(False)


@register_figure(
    "lsds",
    shows=(
        "Local structure discrepancy of sampled rows after whitening and after SoftDecay with its default α, in every "
        "layer: the smaller, the better each row's neighbourhood is kept."
    ),
    answers=f"{YAN}, Fig. 6",
    needs=("statistics", "sample"),
)
def draw_lsds(run: RunData, figure: Figure) -> None:
    """Two bars for each layer, from the same sampled rows."""
    axes = figure.subplots()
    discrepancy = get("lsds")
    at = np.arange(len(run.layers))
    for repair, label, colour, side in (
        (Whitening(), "whitening", BLUE, -0.2),
        (SoftDecay(form="paper"), "SoftDecay", AMBER, 0.2),
    ):
        values = []
        for layer in run.layers:
            rows = run.sample(layer).values[:_LSDS_ROWS].astype(np.float64)
            values.append(discrepancy(rows, repair.fit_moments(run.summary(layer).moments).transform(rows)))
        axes.bar(at + side, values, 0.4, color=colour, label=label)
    label_layers(axes, run.layers, run.findings.layer_names)
    axes.set_xlim(-0.6, len(at) - 0.4)
    axes.set_ylabel("LSDS")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
