"""Figures of the norm-variance study that no scan has: other choices of types, words of several tokens, post-LN."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isotrope.drawing.style import COLOURS, GREY, PAGE
from isotrope.errors import InputError
from isotrope.studies.figures import Picture, by_layer, drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Figures of a scan that answer the paper's.
OF_RUN = {
    "layers": ("norm-variance", "norm-variance-layers", "norm-variance-tokens", "variance-shares", "squared-norms"),
    "frequency": ("frequency", "frequency-layers", "frequency-slopes", "token-counts", "norm-histograms"),
}


def chosen_picture(frame: pd.DataFrame, name: str, by: str, slope: str) -> Picture:
    """Slope of V on M by layer for other choices of types or parts of the text. slope: its column."""
    title = f"Slope of V on M by layer, by {by}."
    return drawing(name, title, partial(by_layer, frame, by, slope, "slope of V on M"), width=PAGE)


def words_picture(frame: pd.DataFrame) -> Picture:
    """Fig. 22: Q of words of several tokens over that of words of one."""
    title = "Mean Q of words of several tokens, as a share of that of words of one, by layer (Fig. 22)."
    return drawing("words", title, partial(by_layer, frame, "tokens", "Q_ratio", "Q / Q of one token"))


def post_norm_picture(frame: pd.DataFrame) -> Picture:
    """Appendix I: C.V. of Q over types of n₀ occurrences or more, beside the slope of 1/√n₀."""
    title = "C.V. of Q over types of n₀ occurrences or more, by layer; dashed: what falls with 1/√n₀ (Appendix I)."
    return drawing("post_norm", title, partial(_post_norm, frame))


def _post_norm(frame: pd.DataFrame, figure: Figure) -> None:
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
