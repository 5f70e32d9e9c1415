"""Claims about the layers of a model: each is shown to agree, to contradict and to stay undecided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.studies.uniformity.layers import judge_depth, judge_last_layer, judge_skewness
from isotrope.studies.uniformity.published import find_median

MEASURES = ("sequence_spectral_skewness", "sequence_spectral_median", "sequence_uniformity", "cls_uniformity")
RISING = np.linspace(0.1, 0.7, 7)


def make_layers(error: float = 0.001, **values: Any) -> pd.DataFrame:
    """Layers with these values, and 95 % intervals of the standard error."""
    columns = dict.fromkeys(MEASURES, RISING) | values
    frame = pd.DataFrame(columns)
    for name in MEASURES:
        frame[f"{name}_low"], frame[f"{name}_high"] = frame[name] - 1.96 * error, frame[name] + 1.96 * error
    return frame


def outcomes(claims: list[Any]) -> list[str]:
    return [claim.outcome for claim in claims]


def test_depth_is_judged_by_intervals() -> None:
    like_the_paper = make_layers(sequence_spectral_median=RISING[::-1])
    assert outcomes(judge_depth("m", like_the_paper)) == ["agrees"] * 4
    assert [claim.ours for claim in judge_depth("m", like_the_paper)] == pytest.approx([1, -1, 1, 1])
    the_other_way = make_layers(**dict.fromkeys(MEASURES, RISING[::-1]) | {"sequence_spectral_median": RISING})
    assert outcomes(judge_depth("m", the_other_way)) == ["contradicts"] * 4
    assert outcomes(judge_depth("m", make_layers(error=1.0))) == ["undecided"] * 4
    # Opus-mt's encoder: one jump down after the input, then a slow rise that does not come back to the first layer.
    hook = np.array([3.2, 0.5, 0.9, 1.3, 1.4, 1.5, 1.7])
    assert outcomes(judge_depth("m", make_layers(**dict.fromkeys(MEASURES, hook)))) == ["undecided"] * 4
    assert outcomes(judge_depth("m", make_layers(error=math.nan))) == ["undecided"] * 4


@pytest.mark.parametrize(("last", "outcome"), [(0.5, "agrees"), (0.1, "contradicts"), (0.2005, "undecided")])
def test_the_last_layer_is_compared_with_the_one_before(last: float, outcome: str) -> None:
    median = np.array([0.6, 0.5, 0.4, 0.3, 0.2, last])
    frame = make_layers(**dict.fromkeys(MEASURES, median))
    (claim,) = judge_last_layer("m", frame)
    assert claim.outcome == outcome
    assert claim.ours == pytest.approx(last - 0.2)


def test_the_interval_of_the_change_is_that_of_two_independent_errors() -> None:
    (claim,) = judge_last_layer("m", make_layers(error=0.01))
    half = 1.96 * math.sqrt(2) * 0.01
    assert claim.evidence == f"95 % interval {0.1 - half:.3g} to {0.1 + half:.3g}"


@pytest.mark.parametrize(
    ("skewness", "error", "outcome"),
    [(RISING, 1e-3, "agrees"), (RISING[::-1], 1e-3, "contradicts"), (RISING, 0.5, "undecided")],
)
def test_skewness_and_uniformity(skewness: Any, error: float, outcome: str) -> None:
    (claim,) = judge_skewness("m", make_layers(error, sequence_spectral_skewness=skewness))
    assert claim.outcome == outcome


def test_the_correlation_of_skewness_and_uniformity_is_spearmans() -> None:
    uneven = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0])
    (claim,) = judge_skewness("m", make_layers(1e-6, sequence_spectral_skewness=uneven))
    rho = stats.spearmanr(uneven, RISING).statistic
    assert claim.ours == pytest.approx(rho)
    assert claim.evidence == f"95 % interval {rho:.3g} to {rho:.3g}"  # without errors there is nothing to vary


def test_printed_medians_are_of_bert_base_only() -> None:
    assert [find_median("bert-base-uncased", layer) for layer in (0, 12)] == [0.12, 0.0397]
    assert math.isnan(find_median("bert-base-uncased", 7))
    assert math.isnan(find_median("distilbert-base-uncased", 0))
