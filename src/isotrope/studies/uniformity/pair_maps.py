"""Maps of sentence pairs by t-SNE, raw and repaired: Figs. 4 and 7 of Yan et al. 2022."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.projections import project_tsne
from isotrope.drawing.robust_limits import limit_axes
from isotrope.drawing.style import BLUE, GREY, ORANGE, PAGE_WIDTH, SMALL_FONT_SIZE, format_number
from isotrope.evaluation.pairs import PairSet
from isotrope.evaluation.treatments import RAW
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.published import FIXED, WHITENING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Pairs of a set that are projected, at most, also in a quick study.
_PAIRS, _QUICK_PAIRS = 400, 150

#: The panels in their order, and what they are called.
_PANELS = {RAW: "raw", WHITENING: "whitening", FIXED: "SoftDecay, α = −0.6"}

#: The share of the points beyond each side of a panel's range, and how much wider than that range a panel is.
_TAIL, _WIDER = 0.01, 0.4


def project_pairs(
    options: StudyOptions, pairs: PairSet, sentences: Sequence[str], images: Mapping[str, Any]
) -> pd.DataFrame:
    """Project some pairs of a set by t-SNE of all columns, raw and repaired.

    Args:
        options: of the study.
        pairs: the set.
        sentences: of the set, each once.
        images: rows of these sentences, (n, d), by the name of the repair.

    Returns:
        set, repair, pair, sentence (1 or 2), x and y.
    """
    half = len(pairs.sentences) // 2
    count = min(_QUICK_PAIRS if options.quick else _PAIRS, half)
    chosen = np.sort(np.random.default_rng(options.seed).choice(half, size=count, replace=False))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    rows = [place[pairs.sentences[i]] for i in (*chosen, *(chosen + half))]
    parts = []
    for name in _PANELS:
        x, y = project_tsne(np.asarray(images[name])[rows], options.seed, components=None).T
        pair, side = np.tile(np.arange(count), 2), np.repeat([1, 2], count)
        columns = {"set": pairs.name, "repair": name, "pair": pair, "sentence": side, "x": x, "y": y}
        parts.append(pd.DataFrame(columns))
    found: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return found


def make_maps(planes: pd.DataFrame, measured: pd.DataFrame) -> list[StudyFigure]:
    """Make a figure of three panels for each set, and where there are several sets one of all.

    Args:
        planes: points, as `project_pairs` returns.
        measured: the measures of each set and repair, which stand above the panels.
    """
    figures = []
    sets = list(dict.fromkeys(planes["set"]))
    for name in sets:
        caption = (
            f"Sentence pairs of {name} by t-SNE, raw and repaired, with EV₁, RBF_dis, TokenUni and LSDS of all of its "
            "sentences; rings and dots: the first and second sentences of pairs, with a line between (Fig. 4)."
        )
        draw = partial(_draw_grid, planes, measured, [name])
        figures.append(make_figure(f"tsne-{name}", caption, draw, width=PAGE_WIDTH, height=2.9))
    if len(sets) > 1:
        caption = "Sentence pairs of every set (columns) by t-SNE, raw, whitened and by SoftDecay (rows) (Fig. 7)."
        draw = partial(_draw_grid, planes, measured, sets)
        width = min(2.25 * len(sets), 2 * PAGE_WIDTH)
        figures.append(make_figure("tsne", caption, draw, width=width, height=3 * width / len(sets) * 1.2))
    return figures


def _draw_grid(planes: pd.DataFrame, measured: pd.DataFrame, sets: Sequence[str], figure: Figure) -> None:
    """Draw one set as a row of panels, several sets as columns."""
    shape = (1, len(_PANELS)) if len(sets) == 1 else (len(_PANELS), len(sets))
    panels = figure.subplots(*shape, squeeze=False)
    panels = panels.T if len(sets) == 1 else panels
    values = measured.set_index(["set", "repair"])
    for column, name in enumerate(sets):
        for axes, (repair, label) in zip(panels[:, column], _PANELS.items(), strict=True):
            outside = _draw_pairs(axes, planes[(planes["set"] == name) & (planes["repair"] == repair)])
            title = label if len(sets) == 1 else f"{name}, {label}"
            lines = [title, format_measures(values.loc[(name, repair)]), *([outside] if outside else [])]
            axes.set_title("\n".join(lines), fontsize=SMALL_FONT_SIZE)


def format_measures(row: Any) -> str:
    """The measures above a panel; LSDS only where there is a repair.

    >>> format_measures({"explained_variance_1": 0.6, "rbf_distance": -1.5, "token_uniformity": 0.59, "lsds": 0.5})
    'EV₁ 0.600, RBF −1.50\\nTokenUni 0.590, LSDS 0.500'
    """
    lsds = "" if np.isnan(row["lsds"]) else f", LSDS {format_number(row['lsds'], 3)}"
    first = f"EV₁ {format_number(row['explained_variance_1'], 3)}, RBF {format_number(row['rbf_distance'])}"
    return f"{first}\nTokenUni {format_number(row['token_uniformity'], 3)}{lsds}"


def _draw_pairs(axes: Axes, rows: pd.DataFrame) -> str:
    """Draw pairs with a line between their sentences, rings and dots, so that neither hides the other.

    Returns:
        How many points lie outside of the panel, empty where none does.
    """
    first, second = (rows[rows["sentence"] == side].sort_values("pair") for side in (1, 2))
    axes.plot([first["x"], second["x"]], [first["y"], second["y"]], color=GREY, linewidth=0.2, alpha=0.6, zorder=1)
    axes.scatter(first["x"], first["y"], s=9.0, linewidth=0.6, facecolors="none", edgecolors=BLUE, zorder=2)
    axes.scatter(second["x"], second["y"], s=2.5, linewidth=0, color=ORANGE, zorder=3)
    axes.set_axis_off()  # its directions and distances mean nothing
    axes.set_aspect("equal", adjustable="datalim")
    x, y = (rows[name].to_numpy(np.float64) for name in "xy")
    note = limit_axes(axes, x, y, ranges=(_select_range(x), _select_range(y)), equal=True)
    return note.partition(",")[0]


def _select_range(values: Any) -> tuple[float, float]:
    """The range of nearly all values, somewhat widened, so that a few far points do not squeeze the others."""
    low, high = np.quantile(values, [_TAIL, 1 - _TAIL])
    room = _WIDER * (high - low)
    return max(float(low - room), float(values.min())), min(float(high + room), float(values.max()))
