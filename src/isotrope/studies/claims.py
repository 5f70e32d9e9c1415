"""Rules by which studies judge a claim of a paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy import stats

from isotrope.studies.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def judge_gain(low: float, high: float) -> Outcome:
    """Judge a gain that a paper reports by the interval of ours: undecided where it holds zero, or is NaN.

    >>> judge_gain(0.1, 0.9), judge_gain(-0.9, -0.1), judge_gain(-0.1, 0.1)
    ('agrees', 'contradicts', 'note')
    """
    return "agrees" if low > 0 else "contradicts" if high < 0 else "note"


def rank_correlation(x: Sequence[Any] | pd.Series[Any], y: Sequence[Any] | pd.Series[Any]) -> float:
    """Spearman's correlation over the pairs without NaN; NaN for fewer than three pairs, or without variation.

    >>> round(rank_correlation([1, 2, 3], [2.0, 5.0, 9.0]), 9)
    1.0
    """
    import pandas as pd

    pairs = pd.DataFrame({"x": list(x), "y": list(y)}).dropna()
    if len(pairs) < 3 or pairs["x"].nunique() < 2 or pairs["y"].nunique() < 2:
        return math.nan
    return float(stats.spearmanr(pairs["x"], pairs["y"]).statistic)


def depth_correlation(values: pd.Series[Any]) -> float:
    """Rank correlation of the values of all layers with depth; NaN where a layer has none."""
    return math.nan if values.isna().any() else rank_correlation(range(len(values)), values)
