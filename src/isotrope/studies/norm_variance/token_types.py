"""The scan of the study, and the trade-off of V with M over other choices of token types and texts."""

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
from isotrope.statistics.token_tables import FEWEST, MOST
from isotrope.studies.figures import StudyFigure, make_layer_figure
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.options import iterate_layers
from isotrope.studies.result import Table
from isotrope.studies.runner import Results

#: What a scan for this study measures.
MEASURES = "tokens,mean_squared_norm,mean_norm_squared,variance,sequence_uniformity"

#: The measures of the trade-off.
TRADE_OFF = ("squared_norm_variation", "variance_on_mean_slope", "variance_on_mean_r2")

#: Shares of the texts.
_SIZES = (0.25, 0.5)


def scan_tokens(options: NormVarianceOptions, model: str) -> Findings:
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
    "letters alone, 3 or more": lambda t: is_in_window(t) & _is_word(t),
    "no special tokens": lambda t: is_in_window(t) & ~t["token"].str.fullmatch(r"\[[A-Z]+\]|<.*>"),
}


def compare_filters(options: NormVarianceOptions, model: str) -> Results:
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


def compare_sizes(options: NormVarianceOptions, model: str) -> Results:
    """Whether the trade-off depends on how much text there is."""
    total = options.source(model).total
    if total is None:
        return Results.note("the number of texts of a stream is not known, so that no part of them was read.")
    rows = []
    for share in (*_SIZES, 1.0):
        count = round(share * total)
        if share < 1.0:
            findings = options.scan(f"{model}-{share}", options.source(model, most=count), MEASURES)
        else:
            findings = scan_tokens(options, model)
        for layer, by in iterate_layers(findings):
            rows.append({"texts": count, "layer": layer} | {name: by[name].value for name in TRADE_OFF})
    frame = pd.DataFrame(rows)
    figure = _make_slopes_figure(frame, "sizes", "texts", "variance_on_mean_slope")
    return Results([Table("sizes", f"The trade-off over a part of the texts, {model}", frame)], (), [figure])
