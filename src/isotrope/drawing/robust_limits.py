"""Limits of a scatter that a few far points cannot stretch, and a note of what lies outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.style import BLUE, SMALL_FONT_SIZE, format_token

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.floating[Any]]
Ranges = tuple[tuple[float, float], tuple[float, float]]

#: At most this share of the points may lie outside, and of fewer points than this none may.
_SHARE, _FEWEST = 0.2, 8

#: A point is far if it lies this many interquartile ranges beyond the quartiles; of normal values none ever does.
_FAR = 10.0

#: Axes are cut only where far points make them this many times as wide.
_STRETCH = 4.0

#: Room around the points, and far points that a note names.
_MARGIN, _MOST_NAMED = 0.05, 2

#: Width of a letter over its height.
_LETTER = 0.6


def compute_robust_range(values: Vector) -> tuple[float, float]:
    """Compute the range of values without a few far ones that would make it several times as wide.

    >>> compute_robust_range(np.array([*range(20), 1e8]))
    (0.0, 19.0)
    >>> compute_robust_range(np.arange(20.0))
    (0.0, 19.0)
    """
    ordered = np.sort(np.asarray(values, np.float64))
    whole = float(ordered[0]), float(ordered[-1])
    if len(ordered) < _FEWEST:
        return whole
    low, high = np.quantile(ordered, [0.25, 0.75])
    reach = _FAR * (high - low)
    near = ordered[(ordered >= low - reach) & (ordered <= high + reach)]
    width = near[-1] - near[0]
    few = len(near) >= (1 - _SHARE) * len(ordered)
    if not few or width <= 0 or whole[1] - whole[0] <= _STRETCH * width:
        return whole
    return float(near[0]), float(near[-1])


def is_inside(values: Vector, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Which values lie within limits."""
    found: NDArray[np.bool_] = (values >= limits[0]) & (values <= limits[1])
    return found


def limit_axes(
    axes: Axes,
    x: Vector,
    y: Vector,
    names: Sequence[str] | None = None,
    *,
    letters: tuple[str, str] = ("x", "y"),
    unit: str = "points",
    ranges: Ranges | None = None,
    equal: bool = False,
) -> str:
    """Set limits that a few far points cannot stretch, mark where these lie by triangles, and say which they are.

    Args:
        axes: the axes of the points.
        x: of the points, (k,).
        y: of the points, (k,).
        names: of the points; without them the note says how many there are and how far they reach.
        letters: what x and y are called in the note.
        unit: what a point is, in the plural.
        ranges: of x and y that are to be seen, by default the robust ones.
        equal: whether both axes have one scale; they then become a square, so that the limits stay as they are.

    Returns:
        The note, empty where nothing lies outside; the axes are then left as they are.
    """
    ranges = ranges or (compute_robust_range(x), compute_robust_range(y))
    out = ~(is_inside(x, ranges[0]) & is_inside(y, ranges[1]))
    if not out.any():
        return ""
    widths = [high - low for low, high in ranges]
    if equal:
        widths = [max(widths)] * 2
        axes.set_aspect("equal", adjustable="box")
    limits = [_compute_limits(*seen, width) for seen, width in zip(ranges, widths, strict=True)]
    if equal or not is_inside(x, ranges[0]).all():
        axes.set_xlim(*limits[0])
    if equal or not is_inside(y, ranges[1]).all():
        axes.set_ylim(*limits[1])
    axes.locator_params(nbins=5)
    far = np.flatnonzero(out)
    _mark_far_points(axes, x[far], y[far], *limits)
    return _format_note(
        far[np.argsort(-_compute_distance(x, y, ranges)[far], kind="stable")], x, y, names, letters, unit
    )


def write_note(axes: Axes, note: str) -> None:
    """Add a note below the title of axes, in lines that are as wide as the axes."""
    if note:
        from textwrap import fill

        figure, grid = axes.get_figure(root=True), axes.get_subplotspec()
        assert figure is not None
        columns = 1 if grid is None else grid.get_gridspec().ncols
        width = int(0.85 * 72 * figure.get_figwidth() / columns / (_LETTER * SMALL_FONT_SIZE))
        axes.set_title("\n".join(filter(None, [axes.get_title(), fill(note, width)])), fontsize=SMALL_FONT_SIZE)


def _compute_limits(low: float, high: float, width: float) -> tuple[float, float]:
    """Limits of a given width and a margin around the middle of a range."""
    half = (0.5 + _MARGIN) * width or 0.5
    return (low + high) / 2 - half, (low + high) / 2 + half


def _mark_far_points(
    axes: Axes, x: Vector, y: Vector, x_limits: tuple[float, float], y_limits: tuple[float, float]
) -> None:
    """Triangles at the edges beyond which points lie."""
    at_x, at_y = np.clip(x, *x_limits), np.clip(y, *y_limits)
    sideways = at_x != x
    for marker, there in (
        (">", x > at_x),
        ("<", x < at_x),
        ("^", (y > at_y) & ~sideways),
        ("v", (y < at_y) & ~sideways),
    ):
        if there.any():
            axes.plot(at_x[there], at_y[there], marker, color=BLUE, alpha=0.6, markersize=4, clip_on=False, zorder=5)


def _compute_distance(x: Vector, y: Vector, ranges: Ranges) -> Vector:
    """How far points lie outside, in widths of the ranges."""
    parts = []
    for values, (low, high) in zip((x, y), ranges, strict=True):
        beyond = np.maximum(low - values, values - high)
        parts.append(np.maximum(beyond, 0.0) / (high - low or 1.0))
    return np.asarray(np.maximum(*parts))


def _format_note(
    far: NDArray[np.intp], x: Vector, y: Vector, names: Sequence[str] | None, letters: tuple[str, str], unit: str
) -> str:
    def format_point(i: np.intp) -> str:
        return f"{letters[0]} {x[i]:.3g}, {letters[1]} {y[i]:.3g}".replace("-", "−")

    if names is None:
        return f"{len(far):,} of {len(x):,} {unit} outside, the farthest at {format_point(far[0])}"
    start = f"outside: {len(far):,} of {len(x):,} {unit}, "
    farthest = {names[i]: i for i in far[::-1]}  # of each name the farthest
    shown = list(farthest.items())[::-1][:_MOST_NAMED]
    points = "; ".join(f"“{format_token(name)}” at {format_point(i)}" for name, i in shown)
    return start + points + (f"; and {len(farthest) - _MOST_NAMED:,} more" if len(farthest) > _MOST_NAMED else "")
