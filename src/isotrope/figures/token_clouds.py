"""The occurrences of some token types as clouds around the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.projections import find_plane
from isotrope.drawing.robust_limits import compute_robust_range, is_inside, limit_axes, write_note
from isotrope.drawing.style import BLACK, LIGHTEST, SEQUENTIAL, format_token
from isotrope.errors import InputError
from isotrope.figures.record import YAMAGIWA, register_figure
from isotrope.figures.token_scatter import label_points, select_tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: The most occurrences of one type.
_OCCURRENCES = 100


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
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    types, sample = run.token_types(run.layer), run.sample(run.layer)
    tokens = run.summary(run.layer).tokens
    if sample.rows.token is None or tokens is None:
        raise InputError("the rows of this run have no tokens; scan a model over a text without --pooling.")
    chosen = select_tokens(types, run.seed)
    means = tokens.means_of(types.id[chosen])
    near = is_inside(types.m, compute_robust_range(types.m))[chosen]
    directions = find_plane(means[near])
    colours = ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, LIGHTEST, 256)))
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
