"""Words as the means of their tokens: what averaging does to Q, M and V (Appendix J)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.style import BLACK, COLOURS, GREY, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.errors import InputError, Undefined
from isotrope.layers import Layer
from isotrope.measures.norm_variance import regression
from isotrope.sources.text.words import WordSource
from isotrope.statistics.token_tables import FEWEST
from isotrope.studies.figures import make_figure, make_layer_figure
from isotrope.studies.norm_variance.intervals import Estimate, compute_difference
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.norm_variance.token_types import is_in_window
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Words of so many tokens or more are counted together, as in Fig. 22.
MANY = 4

#: Layers that fit below each other on a page.
_ROWS = 5

#: Half of a 95 % interval in standard errors.
_Z = 1.959964


def measure_words(options: NormVarianceOptions, model: str) -> Results:
    """Fig. 22: what averaging the tokens of a word does to Q, M and V."""
    source = WordSource(options.source(model, merge_types=False))  # type: ignore[arg-type]
    findings = options.scan(f"{model}-words", source, "squared_norm_variation", sample=0, checkpoints=False)
    words = select_words(findings.tables["tokens"])
    frame = tabulate_token_counts(words, findings.layers)
    title = f"Mean Q, M and V over words of 1, 2, ... tokens and their ratio to words of one, by layer, {model}"
    caption = "Mean Q of words of several tokens, as a share of that of words of one, by layer (Fig. 22)."
    scatter = "Q, M and V of words against log₁₀ of their frequency, and V against M, by layer and number of tokens."
    shown = np.unique(np.linspace(0, len(findings.layers) - 1, _ROWS).round().astype(int))
    layers = [findings.layers[i] for i in shown]
    figures = [
        make_layer_figure("words", caption, frame, "tokens", "Q_ratio", "Q / Q of one token"),
        make_figure("words-layers", scatter, partial(draw_words, words, layers), width=PAGE_WIDTH, height=7.6),
    ]
    return Results([Table("words", title, frame)], judge_words(frame, model), figures)


def select_words(tokens: pd.DataFrame) -> pd.DataFrame:
    """The words in the window, with the column `tokens`: of how many they are, at most `MANY`."""
    kept = tokens[is_in_window(tokens)]
    words: pd.DataFrame = kept.assign(tokens=(kept["token"].str.count(" ") + 1).clip(upper=MANY))
    return words


def tabulate_token_counts(words: pd.DataFrame, layers: Sequence[Layer]) -> pd.DataFrame:
    """Tabulate mean Q, M and V over words of 1 to `MANY` tokens, and their ratio to words of one token.

    The ratio of Q has a 95 % interval over words, from the errors of the two means on the logarithmic scale.
    """
    rows = []
    for layer in layers:
        here = words[words["layer"] == str(layer)]
        single = here[here["tokens"] == 1]
        for count, some in here.groupby("tokens"):
            row: dict[str, Any] = {"layer": layer, "tokens": int(str(count)), "words": len(some)}
            row |= {name: float(some[name].mean()) for name in "QMV"}
            for name in "QMV":
                below = float(single[name].mean()) if len(single) else 0.0
                row[f"{name}_ratio"] = row[name] / below if below else math.nan
            error = math.hypot(_relative_error(some["Q"]), _relative_error(single["Q"]))
            row["Q_ratio_low"], row["Q_ratio_high"] = (row["Q_ratio"] * math.exp(s * _Z * error) for s in (-1, 1))
            rows.append(row)
    ratios = ["Q_ratio", "M_ratio", "V_ratio", "Q_ratio_low", "Q_ratio_high"]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["layer", "tokens", "words", "Q", "M", "V", *ratios])
    return frame


def _relative_error(values: pd.Series[Any]) -> float:
    """Standard error of a mean over the mean; NaN for fewer than two values."""
    return float(values.std(ddof=1) / math.sqrt(len(values)) / values.mean()) if len(values) > 1 else math.nan


def judge_words(frame: pd.DataFrame, model: str = "") -> list[Claim]:
    """Judge whether words of several tokens have smaller Q, and less so in deep layers (Fig. 22)."""
    several = frame[frame["tokens"] == 2]
    if not len(several):
        which = "frequent word has two tokens or more" if len(frame) else f"word occurs {FEWEST} times or more"
        return [Claim("note", f"no {which}, so that there is no artefact to see.", "Fig. 22", model=model)]
    names = ["Q_ratio", "Q_ratio_low", "Q_ratio_high"]
    first, last = (Estimate(*map(math.log, several.iloc[at][names])) for at in (0, -1))
    ratio = Estimate(*several.iloc[0][names])
    text = (
        f"words of two tokens have {ratio.value:.2f} times the Q of words of one in the first layer; the paper: less."
    )
    outcome = judge_interval(-first.high, -first.low)
    claims = [Claim(outcome, text, "Fig. 22", ratio.value, evidence=ratio.evidence, model=model)]
    away = [one if one.value > 0 else -one for one in (first, last)]
    nearer = compute_difference(*away)
    text = (
        f"words of two tokens have {several.iloc[-1]['Q_ratio']:.2f} times the Q of words of one in the last layer; "
        "the paper: nearer to 1 than in the first."
    )
    evidence = f"change of |log ratio|: {nearer.evidence}" if nearer.evidence else ""
    outcome = judge_interval(nearer.low, nearer.high)
    return [*claims, Claim(outcome, text, "Fig. 22", several.iloc[-1]["Q_ratio"], evidence=evidence, model=model)]


def draw_words(words: pd.DataFrame, layers: Sequence[Layer], figure: Figure) -> None:
    """Draw a row of four scatters for each layer, words coloured by their number of tokens, with the lines of all."""
    if len(words) < 3:
        raise InputError(f"fewer than three words occur {FEWEST} times or more, so that there is nothing to draw")
    grid = figure.subplots(len(layers), 4, squeeze=False)
    for row, layer in zip(grid, layers, strict=True):
        here = words[words["layer"] == str(layer)]
        log = here.assign(n=np.log10(here["n"]))
        for axes, (x, y) in zip(row, (("n", "Q"), ("n", "M"), ("n", "V"), ("M", "V")), strict=True):
            _scatter(axes, log, x, y)
            axes.set_xlabel(("log₁₀ n" if x == "n" else x) if layer == layers[-1] else "")
            axes.set_ylabel(f"{y} (layer {layer})" if axes is row[0] else y)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, title="tokens", loc="outside upper center", ncols=MANY, markerscale=3)


def _scatter(axes: Axes, words: pd.DataFrame, x: str, y: str) -> None:
    for count, some in words.groupby("tokens"):
        number = int(str(count))
        label = f"{number} or more" if number == MANY else str(number)
        colour = COLOURS[number - 1]
        axes.scatter(some[x], some[y], s=2, color=colour, alpha=0.5, linewidth=0, rasterized=True, label=label)
    try:
        line = regression(words[x].to_numpy(), words[y].to_numpy())
    except Undefined:
        return
    ends = np.array([words[x].min(), words[x].max()])
    axes.plot(ends, words[y].mean() + line.slope * (ends - words[x].mean()), color=BLACK, linewidth=1.0)
    words_of_line = f"slope {line.slope:.3g}, R² {line.correlation**2:.2f}".replace("-", "−")
    axes.set_title(words_of_line, fontsize=SMALL_FONT_SIZE, color=GREY)
