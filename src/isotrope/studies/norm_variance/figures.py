"""Figures of the norm-variance study that no scan has: other choices of types, words of several tokens, post-LN."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isotrope.drawing.style import COLOURS, GREY, PAGE
from isotrope.errors import InputError
from isotrope.studies.figures import StudyFigure, make_figure, make_layer_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Figures of a run that correspond to those of the paper, by experiment.
RUN_FIGURES = {
    "layers": ("norm-variance", "norm-variance-layers", "norm-variance-tokens", "variance-shares", "squared-norms"),
    "frequency": ("frequency", "frequency-layers", "frequency-slopes", "token-counts", "norm-histograms"),
}


def make_slopes_figure(frame: pd.DataFrame, name: str, by: str, slope: str) -> StudyFigure:
    """Slope of V on M by layer, for several filters of types or sizes of the text; `slope` is its column."""
    return make_layer_figure(
        name, f"Slope of V on M by layer, by {by}.", frame, by, slope, "slope of V on M", width=PAGE
    )


def make_words_figure(frame: pd.DataFrame) -> StudyFigure:
    """Fig. 22: Q of words of several tokens over that of words of one."""
    title = "Mean Q of words of several tokens, as a share of that of words of one, by layer (Fig. 22)."
    return make_layer_figure("words", title, frame, "tokens", "Q_ratio", "Q / Q of one token")


def make_post_norm_figure(frame: pd.DataFrame) -> StudyFigure:
    """Appendix I: C.V. of Q over types of n₀ occurrences or more, with the slope of 1/√n₀."""
    title = "C.V. of Q over types of n₀ occurrences or more, by layer; dashed: what falls with 1/√n₀ (Appendix I)."
    return make_figure("post_norm", title, partial(_draw_post_norm, frame))


def _draw_post_norm(frame: pd.DataFrame, figure: Figure) -> None:
    columns = [name for name in frame if str(name).startswith("cv ")]
    if not (frame[columns] > 0).to_numpy().any():
        raise InputError("fewer than three types occur often enough, so that there is no C.V. to draw")
    axes = figure.subplots()
    counts = [int(str(name).removeprefix("cv ")) for name in columns]
    for number, row in enumerate(frame.to_dict("records")):
        values = [row[name] for name in columns]
        axes.plot(counts, values, marker=".", color=COLOURS[number % len(COLOURS)], label=str(row["layer"]))
    first = float(frame[columns[0]].median())
    axes.plot(counts, [first * (counts[0] / n) ** 0.5 for n in counts], color=GREY, linestyle="--")
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("n₀")
    axes.set_ylabel("C.V. of Q")
    figure.legend(title="layer", loc="outside right upper", ncols=1 + len(frame) // 13)
