"""A colour for each layer, dark to light, and the bar that says which is which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotrope.drawing.style import LIGHTEST, SEQUENTIAL, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Names of layers beside the bar.
_NAMED = 7


def layer_colours(count: int) -> list[Any]:
    """A colour for each of so many layers."""
    from matplotlib import colormaps

    return [colormaps[SEQUENTIAL](LIGHTEST * i / max(count - 1, 1)) for i in range(count)]


def layer_bar(figure: Figure, axes: Any, names: Sequence[str]) -> None:
    """A bar beside the axes with the colours of the layers; nothing where there is one layer."""
    if len(names) < 2:
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    edges = [i - 0.5 for i in range(len(names) + 1)]
    colours = ListedColormap(layer_colours(len(names)))
    every = -(-len(names) // _NAMED)
    places = list(range(0, len(names), every))
    bar = figure.colorbar(ScalarMappable(BoundaryNorm(edges, len(names)), colours), ax=axes, ticks=places, pad=0.02)
    bar.ax.set_yticklabels([names[i] for i in places])
    bar.ax.tick_params(length=0, labelsize=SMALL)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label("layer")


def share_axes(axes: Axes, *, vertical: str = "share of singular values") -> None:
    """Axes of a cumulative curve of normalised singular values."""
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("singular value / largest")
    axes.set_ylabel(vertical)
