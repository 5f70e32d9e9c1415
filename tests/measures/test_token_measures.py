"""Measures over token types against pandas-like loops, scipy's regression and hand-worked cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures import MEASURES
from isotrope.sources.batch import Rows
from isotrope.statistics import TokenStatistics, prepare_rows


def tokens(values: np.ndarray, types: np.ndarray) -> TokenStatistics:
    return TokenStatistics.of(prepare_rows(values, Rows(np.arange(len(types), dtype=np.uint64), token=types)))


def read(name: str, statistic: TokenStatistics, variant: str = "definition") -> float:
    return MEASURES.get(name).value(statistic, variant=variant)


@pytest.fixture(scope="module")
def corpus() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    types = rng.zipf(1.4, 3000) % 200
    size = rng.uniform(0.3, 1.5, 200)
    values = rng.standard_normal((200, 6))[types] * size[types, None] + rng.standard_normal((3000, 6)) + 0.5
    return values, types


def frequent(values: np.ndarray, types: np.ndarray) -> dict[str, np.ndarray]:
    """n, Q, M and V of each type with 10 occurrences or more."""
    columns: dict[str, list[float]] = {"n": [], "q": [], "m": [], "v": [], "s": []}
    for t in np.unique(types):
        own = values[types == t]
        if len(own) >= 10:
            units = own / np.linalg.norm(own, axis=1, keepdims=True)
            cosines = units @ units.T
            columns["n"].append(len(own))
            columns["q"].append((own**2).sum(axis=1).mean())
            columns["m"].append((own.mean(axis=0) ** 2).sum())
            columns["v"].append(own.var(axis=0).sum())
            columns["s"].append(cosines[~np.eye(len(own), dtype=bool)].mean())
    return {k: np.array(v) for k, v in columns.items()}


def test_variance_splits_into_within_and_between(corpus: tuple[np.ndarray, np.ndarray]) -> None:
    values, types = corpus
    t = tokens(values, types)
    within = sum(
        ((own := values[types == k]) - own.mean(axis=0)).ravel() @ (own - own.mean(axis=0)).ravel() for k in set(types)
    ) / len(values)
    total, q = values.var(axis=0).sum(), (values**2).sum(axis=1).mean()
    assert read("within_variance", t) == pytest.approx(within, rel=1e-10)
    assert read("between_variance", t) == pytest.approx(total - within, rel=1e-9)
    assert read("within_share", t) == pytest.approx(within / q, rel=1e-10)
    assert read("between_share", t) == pytest.approx((total - within) / q, rel=1e-9)
    assert read("mean_share", t) == pytest.approx((values.mean(axis=0) ** 2).sum() / q, rel=1e-10)
    assert read("within_of_variance", t) == pytest.approx(within / total, rel=1e-10)
    assert read("mean_share", t) + read("within_share", t) + read("between_share", t) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["mean_share", "within_share", "between_share", "within_of_variance"])
def test_published_shares_are_over_frequent_types(corpus: tuple[np.ndarray, np.ndarray], name: str) -> None:
    values, types = corpus
    kinds, counts = np.unique(types, return_counts=True)
    some = np.isin(types, kinds[counts >= 10])
    assert 0 < some.sum() < len(types)
    assert read(name, tokens(values, types), "published") == pytest.approx(
        read(name, tokens(values[some], types[some])), rel=1e-9
    )


def test_the_window_includes_both_ends() -> None:
    # Types of 9, 10 and 11 occurrences: the first is left out.
    types = np.repeat([0, 1, 2], [9, 10, 11])
    values = np.repeat([[1.0], [2.0], [4.0]], [9, 10, 11], axis=0)
    q = np.array([4.0, 16.0])
    assert read("squared_norm_variation", tokens(values, types)) == pytest.approx(q.std() / q.mean())
    # And at the upper end 100,000 is in, 100,001 is not.
    statistic = tokens(values, types)
    statistic._n[1:] = [100_000, 100_001]
    with pytest.raises(Undefined, match="found 1"):
        read("squared_norm_variation", statistic)


def test_variation_and_trade_off(corpus: tuple[np.ndarray, np.ndarray]) -> None:
    t, f = tokens(*corpus), frequent(*corpus)
    assert len(f["n"]) > 20
    assert read("squared_norm_variation", t) == pytest.approx(stats.variation(f["q"]), rel=1e-10)
    line = stats.linregress(f["m"], f["v"])
    assert read("variance_on_mean_slope", t) == pytest.approx(line.slope, rel=1e-9)
    assert read("variance_on_mean_r2", t) == pytest.approx(line.rvalue**2, rel=1e-9)


@pytest.mark.parametrize(("name", "column"), [("squared_norm", "q"), ("mean_norm", "m"), ("variance", "v")])
@pytest.mark.parametrize("prefix", ["", "log_"])
def test_regressions_on_frequency(corpus: tuple[np.ndarray, np.ndarray], name: str, column: str, prefix: str) -> None:
    t, f = tokens(*corpus), frequent(*corpus)
    y = np.log10(1 + f[column]) if prefix else f[column]
    line = stats.linregress(np.log10(f["n"]), y)
    assert read(f"{prefix}{name}_on_frequency_slope", t) == pytest.approx(line.slope, rel=1e-9)
    assert read(f"{prefix}{name}_on_frequency_r2", t) == pytest.approx(line.rvalue**2, rel=1e-8)


def test_a_full_trade_off() -> None:
    # Types with Q = 10 and M = 1, 4, 9: V = 10 − M, on a line of slope −1.
    rows, types = [], []
    for kind, m in enumerate((1.0, 4.0, 9.0)):
        for side in (1.0, -1.0):
            rows += [[math.sqrt(m), side * math.sqrt(10 - m)]] * 5
            types += [kind] * 5
    t = tokens(np.array(rows), np.array(types))
    assert read("variance_on_mean_slope", t) == pytest.approx(-1.0)
    assert read("variance_on_mean_r2", t) == pytest.approx(1.0)
    assert read("squared_norm_variation", t) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(Undefined, match="horizontal"):
        read("mean_norm_on_frequency_slope", t)


def test_a_level_line_has_a_slope_but_no_r2() -> None:
    types = np.repeat([0, 1, 2], [10, 20, 40])
    angle = np.arange(70.0)
    values = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # Q = 1 for all types
    t = tokens(values, types)
    assert read("squared_norm_on_frequency_slope", t) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(Undefined, match="vertical"):
        read("squared_norm_on_frequency_r2", t)


def test_self_similarity_is_the_mean_cosine_within_types(corpus: tuple[np.ndarray, np.ndarray]) -> None:
    values, types = corpus
    t, f = tokens(values, types), frequent(values, types)
    # Sums of directions of float64 rows are kept in float64.
    assert read("self_similarity", t) == pytest.approx(f["s"].mean(), abs=1e-10)
    overall = MEASURES.get("mean_cosine")(values)
    assert read("self_similarity_adjusted", t) == pytest.approx(f["s"].mean() - overall, abs=1e-10)


def test_too_few_types_is_a_reason() -> None:
    t = tokens(np.random.default_rng(1).standard_normal((25, 3)), np.repeat([0, 1], [20, 5]))
    for name in ("squared_norm_variation", "variance_on_mean_slope", "log_variance_on_frequency_r2"):
        with pytest.raises(Undefined, match="token types with 10 to 100,000 occurrences, found 1"):
            read(name, t)
