"""The trade-off of V with M over other choices of token types and texts, and words of several tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from isotrope.drawing.style import PAGE_WIDTH
from isotrope.errors import Undefined
from isotrope.findings import Findings
from isotrope.layers import Layer
from isotrope.measures.norm_variance import r_squared, regression
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.words import WordSource
from isotrope.statistics.token_tables import FEWEST, MOST
from isotrope.studies.figures import StudyFigure, make_layer_figure
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results

#: What a scan for this study measures.
MEASURES = "tokens,mean_squared_norm,mean_norm_squared,variance"

#: The measures of the trade-off.
TRADE_OFF = ("squared_norm_variation", "variance_on_mean_slope", "variance_on_mean_r2")

#: Shares of the texts.
_SIZES = (0.25, 0.5)


def scan_tokens(options: StudyOptions, model: str) -> Findings:
    """Scan a model for this study, or read the scan that was made."""
    return options.scan(model, options.source(model), MEASURES)


def is_in_window(types: pd.DataFrame) -> pd.Series[bool]:
    """Which types the paper counts, by their number of occurrences."""
    return (types["n"] >= FEWEST) & (types["n"] <= MOST)


def _is_word(types: pd.DataFrame) -> Any:
    return types["token"].str.fullmatch(r"[Ġ▁]?[^\W\d_]{3,}")


#: Which types count, by name; the first is the paper's choice.
FILTERS: dict[str, Callable[[Any], Any]] = {
    "10 to 100,000": is_in_window,
    "30 or more": lambda t: t["n"] >= 30,
    "100 or more": lambda t: t["n"] >= 100,
    "2 or more": lambda t: t["n"] >= 2,
    "whole words of 3 letters or more": lambda t: is_in_window(t) & _is_word(t),
    "no special tokens": lambda t: is_in_window(t) & ~t["token"].str.fullmatch(r"\[[A-Z]+\]|<.*>"),
}

#: Words of more tokens are counted together.
_MANY = 5


def compare_filters(options: StudyOptions, model: str) -> Results:
    """Whether the trade-off depends on which types are counted."""
    findings = scan_tokens(options, model)
    title = f"C.V. of Q, slope and R² of V on M over types chosen otherwise, {model}: {', '.join(FILTERS)}"
    frame = pd.DataFrame(_list_filters(findings.tables["tokens"], findings.layers))
    return Results([Table("filters", title, frame)], (), [_make_slopes_figure(frame, "filters", "types", "slope")])


def _make_slopes_figure(frame: pd.DataFrame, name: str, by: str, slope: str) -> StudyFigure:
    """Slope of V on M by layer, for several filters of types or sizes of the text; `slope` is its column."""
    title = f"Slope of V on M by layer, by {by}."
    return make_layer_figure(name, title, frame, by, slope, "slope of V on M", width=PAGE_WIDTH)


def _list_filters(tokens: pd.DataFrame, layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """C.V. of Q, slope and R² of V on M for each layer and choice of types; NaN where there are fewer than three.

    tokens: layer, token, n, Q, M, V of each type.
    """
    rows = []
    for layer in layers:
        types = tokens[tokens["layer"] == str(layer)]
        for name, keep in FILTERS.items():
            kept = types[keep(types)]
            rows.append({"layer": layer, "types": name, "count": len(kept)} | compute_trade_off(kept))
    return rows


def compute_trade_off(types: pd.DataFrame) -> dict[str, float]:
    """C.V. of Q (ddof 0), slope and R² of V on M over all given types.

    >>> import pandas as pd
    >>> compute_trade_off(pd.DataFrame({"Q": [3.0, 3, 3], "M": [1.0, 2, 3], "V": [2.0, 1, 0]}))
    {'cv': 0.0, 'slope': -1.0, 'r2': ...}
    """
    if len(types) < 3:
        return {"cv": math.nan, "slope": math.nan, "r2": math.nan}
    q = types["Q"].to_numpy()
    found = {"cv": float(q.std() / q.mean()), "slope": math.nan, "r2": math.nan}
    try:
        line = regression(types["M"].to_numpy(), types["V"].to_numpy())
        found |= {"slope": line.slope, "r2": r_squared(line)}
    except Undefined:
        pass
    return found


def compare_sizes(options: StudyOptions, model: str) -> Results:
    """Whether the trade-off depends on how much text there is."""
    texts = [text.text for text in open_corpus(options.limited_text)]
    rows = []
    for share in (*_SIZES, 1.0):
        count = round(share * len(texts))
        if share < 1.0:
            findings = options.scan(f"{model}-{share}", options.input(model, text=texts[:count]).open(), MEASURES)
        else:
            findings = scan_tokens(options, model)
        for layer, by in iterate_layers(findings):
            rows.append({"texts": count, "layer": layer} | {name: by[name].value for name in TRADE_OFF})
    frame = pd.DataFrame(rows)
    figure = _make_slopes_figure(frame, "sizes", "texts", "variance_on_mean_slope")
    return Results([Table("sizes", f"The trade-off over a part of the texts, {model}", frame)], (), [figure])


def measure_words(options: StudyOptions, model: str) -> Results:
    """Fig. 22: what averaging the tokens of a word does to Q, M and V."""
    source = WordSource(options.input(model).open())  # type: ignore[arg-type]
    findings = options.scan(f"{model}-words", source, "squared_norm_variation", sample=0, checkpoints=False)
    frame = _tabulate_token_counts(findings.tables["tokens"], findings.layers)
    title = f"Mean Q, M and V over words of 1, 2, ... tokens and their ratio to words of one, by layer, {model}"
    caption = "Mean Q of words of several tokens, as a share of that of words of one, by layer (Fig. 22)."
    figure = make_layer_figure("words", caption, frame, "tokens", "Q_ratio", "Q / Q of one token")
    return Results([Table("words", title, frame)], [_judge_words(frame)], [figure])


def _tabulate_token_counts(tokens: pd.DataFrame, layers: Sequence[Layer]) -> pd.DataFrame:
    """Tabulate mean Q, M and V over frequent words of 1 to _MANY tokens, and their ratio to words of one token."""
    rows = []
    kept = tokens[is_in_window(tokens)]
    pieces = (kept["token"].str.count(" ") + 1).clip(upper=_MANY)
    for layer in layers:
        here = kept["layer"] == str(layer)
        single = None
        for count in sorted(pieces.unique()):
            words = kept[here & (pieces == count)]
            means = {name: float(words[name].mean()) for name in ("Q", "M", "V")}
            single = means if count == 1 else single
            ratios = {f"{k}_ratio": v / single[k] if single and single[k] else math.nan for k, v in means.items()}
            rows.append({"layer": layer, "tokens": int(count), "words": len(words), **means, **ratios})
    columns = ["layer", "tokens", "words", "Q", "M", "V", "Q_ratio", "M_ratio", "V_ratio"]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return frame


def _judge_words(frame: pd.DataFrame) -> Claim:
    """Words of several tokens have smaller Q, less so in deep layers (Fig. 22)."""
    several = frame[frame["tokens"] == 2]
    if not len(several):
        which = "frequent word has two tokens or more" if len(frame) else f"word occurs {FEWEST} times or more"
        return Claim("note", f"no {which}, so that there is no artefact to see.", "Fig. 22")
    first, last = several["Q_ratio"].iloc[0], several["Q_ratio"].iloc[-1]
    text = (
        f"words of two tokens have {first:.2f} times the Q of words of one in the first layer, {last:.2f} times in the "
        "last; the paper: smaller, and less so in deep layers."
    )
    agrees = first < 1 and abs(1 - last) < abs(1 - first)
    return Claim.judge(agrees, text, "Fig. 22", float(first))
