"""Scatters of token types: their least-squares line, and the names of a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.robust_limits import compute_robust_range, limit_axes, write_note
from isotrope.drawing.style import BLUE, ORANGE, SMALL_FONT_SIZE, format_token
from isotrope.figures.run_data import TokenTypes, Vector
from isotrope.measures.norm_variance import regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Parts into which the range of log frequencies is divided, and the letters that a token needs to be shown by name.
_PARTS, _LETTERS = 10, 3

#: Where a name may stand, in order of preference: direction from its point.
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))

#: Distance of a name from its point, and how wide and high a letter is, in points.
_APART, _WIDE, _HIGH = 3.0, 0.62 * SMALL_FONT_SIZE, 1.25 * SMALL_FONT_SIZE

_ALIGN = {1: ("left", "bottom"), -1: ("right", "top"), 0: ("center", "center")}


def draw_trend(
    axes: Axes,
    x: Vector,
    y: Vector,
    *,
    size: float = 3.0,
    names: Sequence[str] | None = None,
    letters: tuple[str, str] = ("x", "y"),
    y_range: tuple[float, float] | None = None,
) -> None:
    """Draw one point for each token type and their least-squares line, with slope and R² as the title.

    Points are rasterized, so that files stay small.

    Args:
        axes: where to draw.
        x: (k,).
        y: (k,).
        size: of the points.
        names: of the points, see `isotrope.drawing.robust_limits.limit_axes`.
        letters: the names of x and y in the note on points outside the limits.
        y_range: the range of y that several axes share.
    """
    line = regression(x, y)
    axes.scatter(x, y, s=size, color=BLUE, alpha=0.35, linewidth=0, rasterized=True)
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, y.mean() + line.slope * (ends - x.mean()), color=ORANGE)
    words = f"slope {line.slope:.3g}, R² {line.correlation**2:.2f}".replace("-", "−")
    ranges = None if y_range is None else (compute_robust_range(x), y_range)
    note = limit_axes(axes, x, y, names, letters=letters, unit="types", ranges=ranges)
    axes.set_title(f"{words}, of all" if note else words, fontsize=SMALL_FONT_SIZE)
    write_note(axes, note)


def select_tokens(types: TokenTypes, seed: int) -> NDArray[np.int64]:
    """Select token types to show by name, spread over all frequencies.

    From each of ten equal parts of the range of log10 n, it draws 2 + ⌊4·√(|T_r|/max |T_r|)⌋ of the types T_r with
    three letters or more.

    Args:
        types: the token types of a layer.
        seed: of the random choice.

    Returns:
        Indices of the selected types, ascending.

    References:
        Yamagiwa and Shimodaira 2024, Appendix A with its erratum.
    """
    log = np.log10(types.n)
    long = np.array([len(format_token(token)) >= _LETTERS for token in types.token])
    edges = np.linspace(log.min(), log.max(), _PARTS + 1)
    part = np.clip(np.searchsorted(edges, log, side="right") - 1, 0, _PARTS - 1)
    members = [np.flatnonzero(long & (part == r)) for r in range(_PARTS)]
    most = max(map(len, members))
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(group, min(2 + int(4 * np.sqrt(len(group) / most)), len(group)), replace=False)
        for group in members
        if len(group)
    ]
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)


def label_points(axes: Axes, points: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """Write names next to points, (k, 2), so that none covers another; points without room stay unnamed.

    The axes must have their final limits.

    Returns:
        The names that were written.
    """
    figure = axes.figure.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # settles where the axes are on the paper
    at = axes.transData.transform(points) * 72 / figure.dpi
    taken: list[tuple[float, float, float, float]] = []
    written = []
    for (x, y), point, name in zip(at, points, names, strict=True):
        wide = _WIDE * len(name)
        for right, up in _SIDES:
            left = x + right * _APART - wide * (1 - right) / 2
            low = y + up * _APART - _HIGH * (1 - up) / 2
            box = (left, left + wide, low, low + _HIGH)
            if all(box[1] < o[0] or o[1] < box[0] or box[3] < o[2] or o[3] < box[2] for o in taken):
                axes.annotate(
                    name,
                    (float(point[0]), float(point[1])),
                    xytext=(right * _APART, up * _APART),
                    textcoords="offset points",
                    fontsize=SMALL_FONT_SIZE,
                    ha=_ALIGN[right][0],
                    va=_ALIGN[up][1],
                    zorder=4,
                )
                taken.append(box)
                written.append(name)
                break
    return written
