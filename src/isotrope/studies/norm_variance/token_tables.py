"""Tables over token types that a scan left: other choices of types, words by their number of tokens, post-LN norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.errors import Undefined
from isotrope.layers import Layer
from isotrope.measures.norm_variance import r_squared, regression
from isotrope.statistics.token_tables import FEWEST, MOST
from isotrope.studies.norm_variance.layer_norms import LayerNorm

if TYPE_CHECKING:
    import pandas as pd


def _in_window(types: pd.DataFrame) -> Any:
    return (types["n"] >= FEWEST) & (types["n"] <= MOST)


def _is_word(types: pd.DataFrame) -> Any:
    return types["token"].str.fullmatch(r"[Ġ▁]?[^\W\d_]{3,}")


#: Which types count, by name; the first is the paper's choice.
FILTERS: dict[str, Callable[[Any], Any]] = {
    "10 to 100,000": _in_window,
    "30 or more": lambda t: t["n"] >= 30,
    "100 or more": lambda t: t["n"] >= 100,
    "2 or more": lambda t: t["n"] >= 2,
    "whole words of 3 letters or more": lambda t: _in_window(t) & _is_word(t),
    "no special tokens": lambda t: _in_window(t) & ~t["token"].str.fullmatch(r"\[[A-Z]+\]|<.*>"),
}

#: Occurrences that types must have for the C.V. by their number.
_COUNTS = (10, 20, 50, 100, 200, 500)

#: Words of more tokens are counted together.
_MANY = 5


def tabulate_filters(tokens: pd.DataFrame, layers: Sequence[Layer]) -> pd.DataFrame:
    """C.V. of Q, slope and R² of V on M for each layer and choice of types; NaN where there are fewer than three.

    tokens: layer, token, n, Q, M, V of each type.
    """
    import pandas as pd

    rows = []
    for layer in layers:
        types = tokens[tokens["layer"] == str(layer)]
        for name, keep in FILTERS.items():
            kept = types[keep(types)]
            rows.append({"layer": layer, "types": name, "count": len(kept)} | compute_trade_off(kept))
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


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


def tabulate_token_counts(tokens: pd.DataFrame, layers: Sequence[Layer]) -> pd.DataFrame:
    """Tabulate mean Q, M and V over frequent words of 1 to _MANY tokens, and their ratio to words of one token."""
    import pandas as pd

    rows = []
    kept = tokens[_in_window(tokens)]
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


def tabulate_variation(tokens: pd.DataFrame, layers: Sequence[Layer], norms: Mapping[Layer, LayerNorm]) -> pd.DataFrame:
    """Tabulate mean Q, its prediction by the norm of the layer, and C.V. of Q over types of n₀ occurrences or more."""
    import pandas as pd

    rows = []
    for layer in layers:
        types = tokens[tokens["layer"] == str(layer)]
        q = types[_in_window(types)]["Q"].to_numpy()
        norm = norms.get(layer)
        row: dict[str, Any] = {
            "layer": layer,
            "gamma²": norm.gamma_square if norm else math.nan,
            "beta²": norm.beta_square if norm else math.nan,
            "predicted Q": norm.predicted if norm else math.nan,
            "mean Q": float(q.mean()) if len(q) else math.nan,
            "bound at 10": norm.variation(FEWEST) if norm else math.nan,
        }
        variations = {count: compute_trade_off(types[types["n"] >= count])["cv"] for count in _COUNTS}
        row |= {f"cv {count}": value for count, value in variations.items()}
        rows.append(row | {"exponent": _fit_exponent(variations)})
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def _fit_exponent(variations: Mapping[int, float]) -> float:
    """How the C.V. falls with n₀: −0.5 if it is all sampling."""
    usable = {count: cv for count, cv in variations.items() if cv > 0}
    if len(usable) < 3:
        return math.nan
    return regression(np.log(np.array(list(usable), dtype=float)), np.log(np.array(list(usable.values())))).slope
