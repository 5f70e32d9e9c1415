"""Measures of the moments against other packages, brute force and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from IsoScore import IsoScore
from scipy import stats
from sklearn.decomposition import PCA

from isotrope.measures import (
    MEASURES,
    drift_norm,
    drift_share,
    eee,
    eee_gini,
    effective_rank,
    effective_rank_eigenvalues,
    get,
    isoscore,
    kept_dimensions,
    mean_cosine,
    mean_norm_squared,
    mean_squared_norm,
    rank_one_residual,
    spectral_median,
    spectral_skewness,
    token_uniformity,
    vanished_dimensions,
    variance,
)
from isotrope.readings.null import draw_isotropic_moments
from isotrope.statistics import Moments, prepare_rows


def space(n: int, d: int, seed: int = 0, offset: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) / np.arange(1, d + 1) ** 0.5 + offset * rng.standard_normal(d)


CASES = [space(300, 10), space(40, 40, 1), space(15, 60, 2), space(500, 3, 3, 20.0)]
cases = pytest.mark.parametrize("rows", CASES, ids=lambda x: f"{len(x)}x{x.shape[1]}")


# Against brute force and other packages


@cases
def test_mean_cosine_over_all_pairs(rows: np.ndarray) -> None:
    n = len(rows)
    pairs = [
        sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
        / math.dist(rows[i], 0 * rows[i])
        / math.dist(rows[j], 0 * rows[j])
        for i in range(min(n, 60))
        for j in range(min(n, 60))
        if i != j
    ]
    assert mean_cosine(rows[:60]) == pytest.approx(np.mean(pairs), abs=1e-12)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = units @ units.T
    assert mean_cosine(rows) == pytest.approx(cosines[~np.eye(n, dtype=bool)].mean(), abs=1e-12)
    assert token_uniformity(rows) == mean_cosine(rows)
    assert token_uniformity(rows, variant="published") == pytest.approx(cosines.mean(), abs=1e-12)


def test_mean_cosine_near_one_keeps_its_digits() -> None:
    # 1 − cos is known: for unit vectors at angles ±a from one axis, half each way, it is sin²(a)·n/(n − 1).
    n, angle = 1000, 1e-5
    side = np.where(np.arange(n) % 2, angle, -angle)
    rows = np.stack([np.cos(side), np.sin(side)], axis=1) * np.linspace(1, 2, n)[:, None]
    assert 1 - mean_cosine(rows) == pytest.approx(math.sin(angle) ** 2 * n / (n - 1), rel=1e-5)


@cases
def test_isoscore_of_its_authors(rows: np.ndarray) -> None:
    assert isoscore(rows) == pytest.approx(float(IsoScore.IsoScore(rows)), abs=1e-6)


@cases
def test_spectra_of_the_covariance_against_scikit_learn(rows: np.ndarray) -> None:
    values = PCA(svd_solver="full").fit(rows).explained_variance_
    shares = values / values.sum()
    assert isoscore(rows) == pytest.approx((1 / (shares**2).sum() - 1) / (rows.shape[1] - 1), rel=1e-9)
    assert effective_rank_eigenvalues(rows) == pytest.approx(math.exp(stats.entropy(shares)), rel=1e-6)


@cases
def test_spectra_of_the_rows_against_numpy(rows: np.ndarray) -> None:
    values = np.linalg.svd(rows, compute_uv=False)
    for k in (1, 2, 7):
        assert get(f"explained_variance_{k}")(rows) == pytest.approx((values[:k] ** 2).sum() / (values**2).sum())
    assert spectral_skewness(rows) == pytest.approx(stats.skew(values / values[0]), rel=1e-8)
    assert spectral_median(rows) == pytest.approx(np.median(values / values[0]), rel=1e-8)
    assert effective_rank(rows) == pytest.approx(math.exp(stats.entropy(values / values.sum())), rel=1e-8)
    assert vanished_dimensions(rows) == (values < 0.05 * values[0]).sum()
    assert kept_dimensions(rows) == math.ceil(len(values) * np.mean(values >= 0.05 * values[0]))
    assert vanished_dimensions(rows, threshold=0.5) == (values < 0.5 * values[0]).sum()


@cases
def test_norms_against_numpy(rows: np.ndarray) -> None:
    mean = rows.mean(axis=0)
    q, m, v = (rows**2).sum(axis=1).mean(), mean @ mean, ((rows - mean) ** 2).sum(axis=1).mean()
    assert mean_squared_norm(rows) == pytest.approx(q, rel=1e-12)
    assert mean_norm_squared(rows) == pytest.approx(m, rel=1e-12)
    assert variance(rows) == pytest.approx(v, rel=1e-10)
    assert drift_norm(rows) == pytest.approx(math.sqrt(m), rel=1e-12)
    assert drift_share(rows) == pytest.approx(m / q, rel=1e-12)
    assert rank_one_residual(rows) == pytest.approx(np.linalg.norm(rows - mean) / np.linalg.norm(rows), rel=1e-10)
    assert mean_squared_norm(rows) == pytest.approx(mean_norm_squared(rows) + variance(rows), rel=1e-12)


# Eigenvalue early enrichment


def literal_eee(rows: np.ndarray) -> float:
    """Cumulative sum of the covariance's eigenvalues minus the straight line, by the trapezoid rule."""
    p = min(rows.shape)
    values = np.sort(np.linalg.eigvalsh(np.cov(rows.T, ddof=1).reshape(rows.shape[1], -1)))[::-1][:p]
    line = values.sum() * np.arange(1, p + 1) / p
    return float(np.trapezoid(np.cumsum(values) - line) / (0.5 * p * values.sum()))


def gini(values: np.ndarray) -> float:
    """Mean absolute difference of all pairs, over twice the mean."""
    return float(np.abs(values[:, None] - values).mean() / (2 * values.mean()))


@cases
def test_eee_by_its_definition(rows: np.ndarray) -> None:
    assert eee(rows) == pytest.approx(literal_eee(rows), abs=1e-10)
    p = min(rows.shape)
    values = Moments.of(prepare_rows(rows)).eigenvalues[:p]
    assert eee_gini(rows) == pytest.approx(gini(values), abs=1e-10)
    assert eee(rows) == pytest.approx(eee_gini(rows) - (values[0] / values.sum() - 1 / p) / p, abs=1e-12)


@pytest.mark.parametrize(("n", "value"), [(1_000, 0.48), (5_000, 0.22), (20_000, 0.11)])
def test_eee_depends_on_n(n: int, value: float) -> None:
    assert eee(draw_isotropic_moments(n, 768)) == pytest.approx(value, abs=0.006)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_eee_reaches_its_bounds(n: int) -> None:
    simplex = np.eye(n, 12)  # as even as n rows can be
    low, _ = MEASURES.get("eee").bounds(n, 12)
    assert low == pytest.approx(1 / n - 1 / (n * n * (n - 1)))
    assert eee(simplex) == pytest.approx(low, abs=1e-12)
    line = np.outer(np.arange(1.0, 31.0), np.ones(4))
    assert eee(line) == pytest.approx(MEASURES.get("eee").bounds(30, 4)[1], abs=1e-12)


# Closed forms


@pytest.mark.parametrize(("n", "d"), [(2000, 32), (1000, 256), (20_000, 64)])
def test_isotropic_rows(n: int, d: int) -> None:
    rows = np.random.default_rng(n + d).standard_normal((n, d))
    assert abs(mean_cosine(rows)) < 5 * math.sqrt(2 / d) / n
    assert isoscore(rows) == pytest.approx(1 / (1 + d / n), rel=0.01)
    assert get("explained_variance_1")(rows) == pytest.approx((1 + math.sqrt(d / n)) ** 2 / d, rel=0.04)


def test_isoscore_is_biased_low_with_few_rows() -> None:
    assert isoscore(draw_isotropic_moments(1000, 768)) == pytest.approx(0.57, abs=0.01)


@pytest.mark.parametrize("ratio", [0.5, 2.0, 10.0])
def test_a_point_plus_noise(ratio: float) -> None:
    d, n = 512, 4000
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, d)) + math.sqrt(ratio) * rng.choice([-1.0, 1.0], d)
    share = ratio / (1 + ratio)  # M/Q
    assert mean_cosine(rows) == pytest.approx(share, abs=0.005)
    assert drift_share(rows) == pytest.approx(share, abs=0.005)
    assert rank_one_residual(rows) == pytest.approx(math.sqrt(1 - share), abs=0.005)


def test_rank_one() -> None:
    rng = np.random.default_rng(2)
    rows = np.outer(rng.standard_normal(200), rng.standard_normal(12))
    assert isoscore(rows) == pytest.approx(0.0, abs=1e-12)
    assert effective_rank(rows) == pytest.approx(1.0, abs=1e-9)
    assert effective_rank_eigenvalues(rows) == pytest.approx(1.0, abs=1e-9)
    assert get("explained_variance_1")(rows) == pytest.approx(1.0)
    assert vanished_dimensions(rows) == 11
    k = 12  # one value of 1, the others 0
    assert spectral_skewness(rows) == pytest.approx((k - 2) / math.sqrt(k - 1))
    assert spectral_median(rows) == 0.0


def test_effective_rank_of_isotropic_rows_with_and_without_a_mean() -> None:
    rows = np.random.default_rng(3).standard_normal((100_000, 64))
    assert effective_rank(rows) == pytest.approx(64.0, abs=0.05)
    assert effective_rank(rows + 5.0) == pytest.approx(24.6, abs=0.05)
    assert effective_rank_eigenvalues(rows + 5.0) == pytest.approx(64.0, abs=0.05)


def with_spectrum(values: np.ndarray, n: int, turn: int) -> np.ndarray:
    """Rows that have exactly these singular values, and a mean of zero, in a random basis."""
    d = len(values)
    left = np.linalg.qr(np.column_stack([np.ones(n), np.random.default_rng(0).standard_normal((n, d))]))[0][:, 1:]
    right = stats.ortho_group.rvs(d, random_state=turn)
    return np.asarray((left * values) @ right)


def test_a_chosen_spectrum_in_any_basis() -> None:
    values = np.array([8.0, 5.0, 3.0, 1.0, 1.0, 0.5, 0.3, 0.1])
    squares = values**2
    expected = {
        "explained_variance_1": 64 / squares.sum(),
        "isoscore": (squares.sum() ** 2 / (squares**2).sum() - 1) / 7,
        "effective_rank": math.exp(stats.entropy(values)),
        "effective_rank_eigenvalues": math.exp(stats.entropy(squares)),
        "spectral_skewness": stats.skew(values),
        "spectral_median": 1 / 8,
        "vanished_dimensions": 2,
        "kept_dimensions": 6,
        "eee_gini": gini(squares),
        "mean_squared_norm": squares.sum() / 50,
        "variance": squares.sum() / 50,
        "drift_norm": 0.0,
        "rank_one_residual": 1.0,
    }
    for name, value in expected.items():
        assert MEASURES.get(name)(with_spectrum(values, 50, 1)) == pytest.approx(value, rel=1e-9, abs=1e-9), name
    turned = [with_spectrum(values, 50, turn) + 0 for turn in range(4)]
    for m in MEASURES:
        if m.needs == "moments" and "rotation" in m.invariant:
            first, *others = (m(rows) for rows in turned)
            assert others == pytest.approx([first] * 3, rel=1e-9, abs=1e-9), m.name


def test_unresolved_directions_of_float32_do_not_raise_the_rank() -> None:
    rng = np.random.default_rng(4)
    rows = (rng.standard_normal((5000, 4)) @ rng.standard_normal((4, 50)) + 30.0).astype(np.float32)
    exact = np.linalg.svd(rows.astype(np.float64), compute_uv=False)[:5]
    assert effective_rank(rows) == pytest.approx(math.exp(stats.entropy(exact)), rel=1e-4)
