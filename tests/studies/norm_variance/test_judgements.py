"""The verdicts of the norm-variance study: a case on each side, and one that nothing decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.studies.norm_variance.all_models import judge_parameters, judge_variations
from isotrope.studies.norm_variance.frequency import judge_frequency
from isotrope.studies.norm_variance.intervals import Estimate, Trend, compute_difference, judge_every
from isotrope.studies.norm_variance.layers import judge_decomposition, judge_trade_off
from isotrope.studies.norm_variance.post_norm import estimate_exponent, judge_post_norm
from isotrope.studies.norm_variance.words import judge_words, tabulate_token_counts
from isotrope.studies.result import Claim


def columns(name: str, values: Sequence[float], half: float, value: str = "") -> dict[str, Any]:
    """A column and its interval."""
    at = np.asarray(values, dtype=float)
    return {name + value: at, f"{name}_low": at - half, f"{name}_high": at + half}


def outcomes(claims: Sequence[Claim]) -> list[str]:
    return [claim.outcome for claim in claims]


# Figs. 5, 6 and 18


def make_layers(half: float, rising: bool, residual: float = 1e-12) -> pd.DataFrame:
    up = np.linspace(0.1, 0.7, 7) if rising else np.linspace(0.7, 0.1, 7)
    frame: dict[str, Any] = {"layer": range(7), "residual": residual}
    for name in ("mean_share", "within_share", "within_of_variance"):
        frame |= columns(f"{name}_window", up, half)
    frame |= columns("between_share_window", up[::-1], half) | columns("self_similarity", up[::-1], half)
    return pd.DataFrame(frame)


def test_shares_that_change_with_depth() -> None:
    assert outcomes(judge_decomposition(make_layers(0.01, rising=True))) == ["agrees"] * 6
    assert outcomes(judge_decomposition(make_layers(0.01, rising=False))) == ["agrees"] + ["contradicts"] * 5
    assert outcomes(judge_decomposition(make_layers(2.0, rising=True))) == ["agrees"] + ["undecided"] * 5
    assert outcomes(judge_decomposition(make_layers(math.nan, rising=True))) == ["agrees"] + ["undecided"] * 5
    assert outcomes(judge_decomposition(make_layers(0.01, rising=True, residual=1e-6)))[0] == "contradicts"
    claim = judge_decomposition(make_layers(0.01, rising=True), "small")[1]
    assert claim.evidence.startswith("correlation: 95 % interval 1 to 1; last layer less first: 95 % interval 0.58")
    assert claim.model == "small"


@pytest.mark.parametrize(
    ("values", "half", "expected"),
    [
        ((1, 2, 3, 4, 5, 6), 0.1, "agrees"),
        ((1, 2, 3, 4, 5, 0), 0.1, "undecided"),  # rises through most layers, and ends below its beginning
        ((1, 2, 3, 4, 5, 1), 0.1, "undecided"),
        ((6, 5, 4, 3, 2, 1), 0.1, "contradicts"),
        ((3, 5, 4, 2, 1, 3), 0.1, "contradicts"),  # falls through most layers, and ends where it began
    ],
)
def test_a_trend_is_a_correlation_and_a_change(values: Sequence[float], half: float, expected: str) -> None:
    up = pd.Series(values, dtype=float)
    assert Trend.of(up, up - half, up + half).judge() == expected
    mirrored = Trend.of(-up, -up - half, -up + half)
    assert mirrored.judge(-1) == expected
    rho = stats.spearmanr(range(len(values)), values).statistic
    assert mirrored.correlation.value == pytest.approx(-rho)
    assert mirrored.change.value == values[0] - values[-1]


# Figs. 2 and 4


def make_trade_off(slope: float, r2: float, half: float = 0.01, cv: Sequence[float] = (0.3, 0.1, 0.2)) -> pd.DataFrame:
    frame: dict[str, Any] = {"layer": range(3)} | columns("variance_on_mean_slope", [-0.05, slope, 0.0], half)
    frame |= columns("variance_on_mean_r2", [0.1, r2, 0.1], half) | columns("squared_norm_variation", cv, half)
    return pd.DataFrame(frame)


@pytest.mark.parametrize(
    ("slope", "r2", "half", "post_norm", "expected"),
    [
        (-1.008, 0.999, 0.01, True, ["agrees", "agrees"]),  # roberta-large
        (-0.70, 0.76, 0.02, True, ["contradicts", "contradicts"]),
        (-0.92, 0.85, 0.1, True, ["undecided", "undecided"]),
        (-0.95, 0.93, math.nan, True, ["undecided", "undecided"]),  # near, but without an interval
        (-0.2, 0.5, 0.05, False, ["agrees", "agrees"]),
        (-1.0, 1.0, 0.05, False, ["contradicts", "contradicts"]),
        (-0.32, 0.38, 0.05, False, ["undecided", "undecided"]),
    ],
)
def test_slope_and_r2_of_both_kinds_of_models(
    slope: float, r2: float, half: float, post_norm: bool, expected: list[str]
) -> None:
    found = judge_trade_off(make_trade_off(slope, r2, half), post_norm=post_norm)
    assert outcomes(found)[:2] == expected
    assert found[0].published == (-1.0 if post_norm else -0.2)
    assert found[1].published == (1.0 if post_norm else 0.5)


@pytest.mark.parametrize(
    ("cv", "half", "expected"),
    [
        ((0.3, 0.1, 0.2), 0.02, "agrees"),
        ((0.3, 0.1, 0.05), 0.02, "contradicts"),
        ((0.3, 0.1, 0.11), 0.02, "undecided"),
        ((0.1, 0.11, 0.3), 0.02, "undecided"),
    ],
)
def test_where_the_variation_is_least(cv: Sequence[float], half: float, expected: str) -> None:
    (*_, claim) = judge_trade_off(make_trade_off(-1.0, 1.0, half, cv), post_norm=True)
    assert claim.outcome == expected
    assert claim.ours == pytest.approx(cv[1])


def test_a_layer_whose_types_do_not_vary_is_not_the_best() -> None:
    """The input embeddings of a model without places: V is 0, and V on M has no R²."""
    frame = make_trade_off(-0.2, 0.3)
    frame.loc[0, ["variance_on_mean_r2", "variance_on_mean_slope"]] = [math.nan, -5.0]
    slope, r2 = judge_trade_off(frame, post_norm=False)
    assert "lowest slope of V on M is -0.200, in layer 1" in slope.text
    assert "highest R² of V on M is 0.300" in r2.text
    (claim,) = judge_trade_off(frame.assign(variance_on_mean_r2=math.nan), post_norm=False)
    assert claim.outcome == "note"


def test_slopes_of_a_model_that_does_not_show_its_norms_are_compared_with_neither_kind() -> None:
    (claim,) = judge_trade_off(make_trade_off(-1.0, 1.0, 0.02, (0.3, 0.1, 0.2)), post_norm=None)
    assert "C.V. of Q" in claim.text


# Fig. 17


def make_slopes(m: Sequence[float], v: Sequence[float], half: float = 0.05) -> pd.DataFrame:
    frame: dict[str, Any] = {"layer": range(len(m))}
    for letter, values in (("M", m), ("V", v), ("Q", np.linspace(-0.2, 0.2, len(m)))):
        frame |= columns(f"log_{letter}", values, half, "_slope")
    return pd.DataFrame(frame)


def test_slopes_on_frequency() -> None:
    agrees = judge_frequency(make_slopes([-0.2] * 7, [0.2] * 7))
    assert outcomes(agrees) == ["agrees", "agrees", "agrees"]
    contradicts = judge_frequency(make_slopes([-0.2] * 6 + [0.2], [-0.2] + [0.2] * 6))
    assert outcomes(contradicts)[:2] == ["contradicts", "contradicts"]
    assert contradicts[0].text == "log M falls with frequency in 6 of 7 layers, not in 6; the paper: in all."
    nowhere = judge_frequency(make_slopes([0.2] * 3, [0.2] * 3))[0]
    assert nowhere.text == "log M falls with frequency in 0 of 3 layers; the paper: in all."


def test_a_slope_in_every_layer_whose_intervals_contain_zero_decides_nothing() -> None:
    """All seven slopes of V are positive, and two of the intervals contain 0."""
    claim = judge_frequency(make_slopes([-0.2] * 7, [0.2] * 5 + [0.02, 0.03]))[1]
    assert claim.outcome == "undecided"
    assert "in 7 of 7 layers" in claim.text
    assert claim.evidence == "95 % intervals exclude 0 in 5 of 7 layers"


def test_one_layer_of_many_needs_more_than_its_own_interval() -> None:
    """Among 24 layers one interval in twenty lies beside 0 by chance."""
    sure, just_against = Estimate(0.5, 0.4, 0.6), Estimate(-0.11, -0.21, -0.01)
    assert judge_every([just_against]) == "contradicts"
    assert judge_every([just_against] + [sure] * 23) == "undecided"
    assert judge_every([Estimate(-0.2, -0.3, -0.1)] + [sure] * 23) == "contradicts"
    assert judge_every([]) == "undecided"


def test_the_slope_of_q_falls() -> None:
    frame = make_slopes([-0.2] * 7, [0.2] * 7)
    frame[["log_Q_slope", "log_Q_low", "log_Q_high"]] *= -1
    frame[["log_Q_low", "log_Q_high"]] = frame[["log_Q_high", "log_Q_low"]].to_numpy()
    assert judge_frequency(frame)[2].outcome == "contradicts"
    assert judge_frequency(make_slopes([-0.2] * 7, [0.2] * 7, half=3.0))[2].outcome == "undecided"


def test_the_difference_of_two_estimates_covers() -> None:
    """Of two means of ten normal numbers each, 95 in 100 intervals hold the true difference."""
    rng = np.random.default_rng(0)
    hits, drawn = 0, [rng.normal(1.0, 1.0, (4000, 10)), rng.normal(0.0, 2.0, (4000, 10))]
    half = [stats.t.ppf(0.975, 9) * stats.sem(sample, axis=1) for sample in drawn]
    for a, b, *halves in zip(*(sample.mean(1) for sample in drawn), *half, strict=True):
        one, other = (Estimate(x, x - h, x + h) for x, h in zip((a, b), halves, strict=True))
        found = compute_difference(one, other)
        hits += found.low <= 1.0 <= found.high
    assert 0.94 < hits / 4000 < 0.98


# Fig. 22


def make_words(ratios: Sequence[float], spread: float, count: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for layer, ratio in enumerate(ratios):
        for tokens, mean in ((1, 100.0), (2, 100.0 * ratio)):
            q = mean * (1 + spread * stats.zscore(rng.normal(size=count)))
            rows += [{"layer": str(layer), "tokens": tokens, "n": 20, "Q": x, "M": x / 2, "V": x / 2} for x in q]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("ratios", "spread", "expected"),
    [
        ((0.5, 0.7, 0.9), 0.1, ["agrees", "agrees"]),
        ((0.9, 0.7, 0.5), 0.1, ["agrees", "contradicts"]),
        ((1.3, 1.2, 1.0), 0.1, ["contradicts", "agrees"]),
        ((0.98, 0.99, 0.99), 0.3, ["undecided", "undecided"]),
        ((0.5, 1.0, 2.5), 0.1, ["agrees", "contradicts"]),  # past 1 and farther from it
    ],
)
def test_words_of_several_tokens(ratios: Sequence[float], spread: float, expected: list[str]) -> None:
    frame = tabulate_token_counts(make_words(ratios, spread), range(len(ratios)))
    found = frame[frame["tokens"] == 2]
    assert found["Q_ratio"].to_numpy() == pytest.approx(ratios)
    error = math.sqrt(2) * spread / math.sqrt(39)  # both means have a relative error of s/√n, ddof 1
    assert found["Q_ratio_high"].to_numpy() == pytest.approx(np.array(ratios) * math.exp(1.959964 * error))
    assert outcomes(judge_words(frame)) == expected


# Appendix I


def make_norms(ratio: Sequence[float], half: float) -> pd.DataFrame:
    q = 100.0 * np.asarray(ratio)
    return pd.DataFrame(
        {"predicted Q": 100.0, "mean Q": q, "mean Q low": q - 100 * half, "mean Q high": q + 100 * half}
    )


@pytest.mark.parametrize(
    ("ratios", "half", "expected"),
    [
        ((1.0, 1.01, 0.98), 0.01, "agrees"),
        ((1.0, 1.01, 0.27), 0.01, "contradicts"),
        ((1.0, 1.01, 0.94), 0.03, "undecided"),
    ],
)
def test_squared_lengths_that_a_norm_predicts(ratios: Sequence[float], half: float, expected: str) -> None:
    claim, _ = judge_post_norm(make_norms(ratios, half), Estimate(-0.5, -0.55, -0.45))
    assert claim.outcome == expected
    assert claim.ours == pytest.approx(max(abs(ratio - 1) for ratio in ratios))


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (Estimate(-0.5, -0.55, -0.45), "agrees"),
        (Estimate(0.2, 0.1, 0.3), "contradicts"),
        (Estimate(-0.4, -0.6, -0.2), "undecided"),
    ],
)
def test_how_the_variation_falls(exponent: Estimate, expected: str) -> None:
    assert judge_post_norm(make_norms([1.0], 0.01), exponent)[1].outcome == expected
    nothing = judge_post_norm(make_norms([1.0], 0.01).assign(**{"predicted Q": math.nan}), exponent)
    assert outcomes(nothing) == ["note"]


def test_an_exponent_of_pure_sampling() -> None:
    """Types whose Q differs from a constant by what n occurrences leave: the C.V. goes with n₀ to the power −0.5."""
    rng = np.random.default_rng(1)
    n = np.round(10 / rng.uniform(size=20_000)).astype(int)  # Zipf: the mean of 1/n from n₀ on is 1/(2 n₀)
    rows = [
        pd.DataFrame(
            {"layer": str(layer), "id": range(len(n)), "n": n, "Q": 100 + rng.normal(size=len(n)) / np.sqrt(n)}
        )
        for layer in range(2)
    ]
    found = estimate_exponent(pd.concat(rows), [0, 1])
    assert found.value == pytest.approx(-0.5, abs=0.05)
    assert found.low < found.value < found.high
    assert found.high - found.low < 0.1


# Table 1 and all models


def test_parameters_that_are_printed_wrong() -> None:
    models = pd.DataFrame(
        {
            "model": ["bert-base-uncased", "gpt2", "mine"],
            "parameters": [109_482_240, 124_439_808, 5],
            "printed parameters": [110e6, 117e6, math.nan],
        }
    )
    assert [(claim.outcome, claim.model) for claim in judge_parameters(models)] == [
        ("agrees", "bert-base-uncased"),
        ("misprint", "gpt2"),
    ]


@pytest.mark.parametrize(("pre", "expected"), [(0.4, "agrees"), (0.02, "contradicts"), (0.11, "undecided")])
def test_models_without_a_norm_vary_more(pre: float, expected: str) -> None:
    layers = pd.concat(
        [
            make_trade_off(-1.0, 1.0, 0.02, (0.3, 0.1, 0.2)).assign(model="bert"),
            make_trade_off(-0.2, 0.5, 0.02, (0.9, pre, 0.8)).assign(model="gpt"),
        ]
    )
    models = pd.DataFrame({"model": ["bert", "gpt"], "norm": ["post-LN", "pre-LN"]})
    (claim,) = judge_variations(layers, models)
    assert claim.outcome == expected
    assert judge_variations(layers, models.assign(norm="pre-LN")) == []
