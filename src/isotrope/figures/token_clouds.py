"""The occurrences of some token types as clouds around the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.robust_limits import is_inside, limit_axes, robust_range, write_note
from isotrope.drawing.style import BLACK, LIGHTEST, SEQUENTIAL, readable
from isotrope.errors import InputError
from isotrope.figures.chosen_tokens import chosen_tokens
from isotrope.figures.labels import label_points
from isotrope.figures.record import YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Occurrences of one type that are drawn at most.
_OCCURRENCES = 100


def plane(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two directions, (d, 2), in which the means of types, (k, d), and the origin spread most."""
    points = np.vstack([means, np.zeros(means.shape[1])])
    return np.asarray(np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:2].T)


@figure(
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
def token_clouds(run: RunData, figure: Figure) -> None:
    """One cloud for each chosen type, its name at its mean."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    types, sample = run.types(run.layer), run.sample(run.layer)
    tokens = run.summary(run.layer).tokens
    if sample.rows.token is None or tokens is None:
        raise InputError("the rows of this run have no tokens; scan a model over a text without --pooling.")
    chosen = chosen_tokens(types, run.seed)
    means = tokens.means_of(types.id[chosen])
    near = is_inside(types.m, robust_range(types.m))[chosen]
    directions = plane(means[near])
    colours = ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, LIGHTEST, 256)))
    norm = Normalize(1, max(float(np.log10(types.n.max())), 1.1))
    axes = figure.subplots()
    drawn, names, seen = [means @ directions], [types.token[i] for i in chosen], [near]
    for i, is_near in zip(chosen, near, strict=True):
        colour = colours(norm(np.log10(types.n[i])))
        here = np.flatnonzero(sample.rows.token == types.id[i])[:_OCCURRENCES]
        points = sample.values[here].astype(np.float64) @ directions
        drawn.append(points)
        seen.append(np.full(len(here), is_near))
        names += [types.token[i]] * len(here)
        axes.scatter(points[:, 0], points[:, 1], s=4, color=colour, alpha=0.4, linewidth=0, rasterized=True)
    axes.plot(0, 0, marker="x", color=BLACK, markersize=7, markeredgewidth=1.5, zorder=5)
    axes.set_xlabel(f"first direction (layer {run.name(run.layer)})")
    axes.set_ylabel("second direction")
    axes.set_aspect("equal", adjustable="datalim")
    here, (x, y) = np.concatenate(seen), np.concatenate(drawn).T
    ranges = robust_range(x[here]), robust_range(y[here])
    write_note(axes, limit_axes(axes, x, y, names, unit="points", ranges=ranges, equal=True))
    figure.colorbar(ScalarMappable(norm, colours), ax=axes, pad=0.02, label="log₁₀ n").outline.set_visible(False)
    label_points(axes, (means @ directions)[near], [readable(types.token[i]) for i in chosen[near]])
