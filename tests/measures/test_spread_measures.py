"""Measures of how rows spread, against closed forms, scipy and cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from scipy.spatial.distance import pdist

from isotrope.errors import Undefined
from isotrope.measures import get
from isotrope.measures.vrm import _entropies
from isotrope.statistics import Moments, Points, prepare_rows

rbf_distance, vrm = get("rbf_distance"), get("vrm")
partition_isotropy, log_partition_isotropy = get("partition_isotropy"), get("log_partition_isotropy")
outlier_dimensions, outlier_dimension_share = get("outlier_dimensions"), get("outlier_dimension_share")


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# RBF distance


@pytest.mark.parametrize("t", [0.5, 0.01, 2.0])
def test_rbf_distance_is_that_of_all_pairs(t: float) -> None:
    rows = normal(700, 9) + 0.5
    squares = pdist(unit(rows), "sqeuclidean")
    expected = special.logsumexp(-squares / t) - math.log(len(squares))
    assert rbf_distance(rows, t=t) == pytest.approx(expected, rel=1e-12)


def test_rbf_distance_of_orthogonal_rows_and_its_lower_end() -> None:
    assert rbf_distance(7.0 * np.eye(30)) == pytest.approx(-4.0, abs=1e-12)
    simplex = np.eye(5) - 0.2  # as far apart as five rows can be
    assert rbf_distance(simplex) == pytest.approx(rbf_distance.bounds(5, 5)[0], abs=1e-12)
    assert rbf_distance(np.ones((9, 4)) * np.arange(1.0, 10.0)[:, None]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("d", [64, 400])
def test_rbf_distance_of_isotropic_rows(d: int) -> None:
    t = 0.5
    value = rbf_distance(normal(3000, d))
    assert value == pytest.approx(-2 / t + 2 / (t**2 * d), abs=2 / d**1.5 + 8 / d**2)
    assert rbf_distance.null is not None
    assert rbf_distance.null(3000, d) == pytest.approx(value, abs=1e-3)


def test_rbf_distance_resolves_rows_that_are_nearly_one() -> None:
    rows = 1e-7 * normal(200, 5) + 1.0
    directions = unit(rows)
    squares = pdist(directions, "sqeuclidean")
    assert rbf_distance(rows) == pytest.approx(-squares.mean() / 0.5, rel=1e-3)


# Vasicek ratio


def reference_scores(rows: np.ndarray) -> np.ndarray:
    """Principal component scores by way of a singular value decomposition."""
    centred = rows - rows.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    scores = u * s
    return scores * math.sqrt(rows.shape[1] / scores.var(axis=0, ddof=1).sum())


@pytest.mark.parametrize(("n", "d"), [(5, 3), (40, 7), (999, 12), (3000, 70), (30, 64)])
def test_vrm_is_that_of_scipys_vasicek_entropy(n: int, d: int) -> None:
    rows = normal(n, d) / np.arange(1, d + 1) ** 0.5 + 2.0
    scores = reference_scores(rows)
    if n <= d:  # the last score is zero but for rounding
        scores = scores[:, : n - 1]
    r = np.exp(stats.differential_entropy(scores, method="vasicek")) / math.sqrt(2 * math.pi * math.e)
    expected = (np.sum((1 - r) ** 2) + d - len(r)) / d
    assert vrm(rows) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [5, 6, 10, 11, 100, 1000, 1001])
def test_the_entropy_of_each_column_is_scipys(n: int) -> None:
    columns = np.random.default_rng(n).standard_t(3, (n, 130))
    np.testing.assert_allclose(_entropies(columns), stats.differential_entropy(columns, method="vasicek"), rtol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(2000, 32), (4000, 100)])
def test_vrm_of_isotropic_rows_is_a_quarter_of_d_over_n(n: int, d: int) -> None:
    assert vrm(normal(n, d)) == pytest.approx(d / (4 * n), rel=0.1)


def test_vrm_of_a_known_spectrum() -> None:
    spectrum = np.repeat([3.0, 1.0, 0.04], 4)
    expected = float(np.mean((1 - np.sqrt(spectrum * 12 / spectrum.sum())) ** 2))
    assert vrm(normal(40_000, 12) * np.sqrt(spectrum)) == pytest.approx(expected, abs=0.01)


def test_the_upper_end_of_vrm_and_by_how_much_estimates_go_beyond() -> None:
    """The entropy of 5,000 Gaussian rows comes out too large, so that 2 − 2/√d is not the end of the range."""
    d = 100
    one = np.where(np.arange(d) == 0, 1.0, 1e-9)
    assert vrm(normal(500_000, d // 20) * one[: d // 20]) == pytest.approx(2 - 2 / math.sqrt(d // 20), abs=0.02)
    value = vrm(normal(5000, d) * one)
    assert 2 - 2 / math.sqrt(d) < value < vrm.bounds(5000, d)[1]


@pytest.mark.parametrize("n", [5, 50, 200, 500])
def test_no_sample_goes_beyond_the_range(n: int) -> None:
    """The sample whose estimated entropy is the largest for its variance, found by climbing over its spacings."""
    m = int(math.sqrt(n) + 0.5)
    above, below = np.minimum(np.arange(n) + m, n - 1), np.maximum(np.arange(n) - m, 0)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        x = np.concatenate([[0.0], np.cumsum(np.exp(logs))])
        x -= x.mean()
        apart, square = x[above] - x[below], float(x @ x)
        slope = x / square
        np.add.at(slope, above, -1 / (n * apart))
        np.add.at(slope, below, 1 / (n * apart))
        return 0.5 * math.log(square) - float(np.mean(np.log(apart))), np.cumsum(slope[::-1])[::-1][1:] * np.exp(logs)

    start = np.log(np.diff(stats.norm.ppf((np.arange(n) + 0.5) / n)))
    best = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 5000})
    x = np.concatenate([[0.0], np.cumsum(np.exp(best.x))])
    d = 400
    worst = vrm(np.hstack([x[:, None], 1e-9 * normal(n, d - 1)]))
    ratio = math.exp(float(_entropies(x[:, None])[0])) / math.sqrt(2 * math.pi * math.e) / x.std(ddof=1)
    assert worst == pytest.approx(max(ratio**2 + 1 - 2 * ratio / math.sqrt(d), 0.0), abs=1e-3)
    assert worst <= vrm.bounds(n, d)[1]
    assert ratio > (1.0 if n > 100 else 0.5)


def test_a_score_of_equal_values_has_no_entropy_and_counts_as_zero() -> None:
    rows = np.vstack([np.zeros((90, 2)), [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]]) + 5.0
    assert vrm(rows) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n", "d", "method"), [(7, 2, "van es"), (300, 5, "ebrahimi"), (20, 60, "ebrahimi"), (1500, 9, "vasicek")]
)
def test_vrm_as_published_is_what_the_authors_ran(n: int, d: int, method: str) -> None:
    """The total variance of one normal sample, scipy's estimator of the day, and only the scores that there are."""
    rows = normal(n, d) / np.arange(1, d + 1)
    total = np.random.default_rng([20_230_723, n, d]).chisquare(d * (n - 1)) / (n - 1)
    scores = reference_scores(rows) * math.sqrt(total / d)
    r = np.exp(stats.differential_entropy(scores, method=method)) / math.sqrt(2 * math.pi * math.e)
    assert vrm(rows, variant="published") == pytest.approx(float(np.sum((1 - r) ** 2)) / d, rel=1e-9)


def test_the_total_variance_of_a_normal_sample_is_drawn_without_the_sample() -> None:
    n, d = 30, 6
    rng = np.random.default_rng(0)
    sums = [rng.standard_normal((n, d)).var(axis=0, ddof=1).sum() for _ in range(3000)]
    assert stats.kstest(sums, stats.chi2(d * (n - 1), scale=1 / (n - 1)).cdf).pvalue > 0.01


# Partition function


def test_partition_isotropy_by_hand() -> None:
    rows = np.array([[2.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    # XᵀX is diagonal, so the directions are ± the axes.
    sums = [math.exp(2) + math.exp(-1) + 1, math.exp(-2) + math.exp(1) + 1, 2 + math.e, 2 + 1 / math.e]
    assert partition_isotropy(rows) == pytest.approx(min(sums) / max(sums), rel=1e-12)
    assert log_partition_isotropy(rows) == pytest.approx(math.log(min(sums) / max(sums)), rel=1e-12)


def test_partition_isotropy_of_long_rows_is_in_its_logarithm() -> None:
    rows = 2400.0 * unit(normal(500, 8) + 3.0)
    assert partition_isotropy(rows) == 0.0
    axis = np.linalg.svd(rows)[2][0]
    along = rows @ axis * np.sign((rows @ axis).mean())
    assert log_partition_isotropy(rows) == pytest.approx(
        special.logsumexp(-along) - special.logsumexp(along), rel=1e-12
    )
    assert -2 * 2400 < log_partition_isotropy(rows) < -4000


def test_partition_isotropy_of_gaussian_rows() -> None:
    """The moment generating function of N(0, λ) along an axis is exp(λ/2)."""
    spectrum = np.array([1.0, 0.5, 0.1])
    rows = normal(200_000, 3) * np.sqrt(spectrum)
    assert log_partition_isotropy(rows) == pytest.approx(-(1.0 - 0.1) / 2, abs=0.02)


def test_repeated_eigenvalues_are_said() -> None:
    note = partition_isotropy.note
    assert note is not None
    assert "2 eigenvalues repeat" in str(note(Points.of(prepare_rows(np.eye(3)))))
    assert note(Points.of(prepare_rows(normal(50, 3)))) is None
    assert note(Points.of(prepare_rows(normal(3, 9)))) is None  # six of them are zero, whose directions all have Z = n


# Outlier dimensions


def test_outlier_dimensions_by_hand() -> None:
    rows = np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 4.0, 3.0, 0.0]])
    # The mean of unit rows is (0.3, 0.8, 0.3, 0), its squares 0.09, 0.64, 0.09, 0.
    assert outlier_dimension_share(rows) == pytest.approx(0.64 / 0.82)
    assert outlier_dimensions(rows) == 1.0
    assert outlier_dimensions(np.ones((5, 7))) == 4.0
    assert outlier_dimensions(np.ones((5, 8))) == 4.0
    assert outlier_dimension_share(np.ones((5, 8))) == pytest.approx(1 / 8)


def test_outlier_dimensions_are_shares_of_the_mean_cosine() -> None:
    rows = normal(300, 20) + np.where(np.arange(20) < 2, 9.0, 0.3)
    mean = unit(rows).mean(axis=0)
    shares = np.sort(mean**2 / (mean @ mean))[::-1]
    assert outlier_dimension_share(rows) == pytest.approx(shares[0])
    assert outlier_dimensions(rows) == 2.0
    assert shares[:1].sum() < 0.5 <= shares[:2].sum()


def test_shares_of_chance_are_said() -> None:
    note = outlier_dimensions.note
    assert note is not None
    assert "chance" in str(note(Moments.of(prepare_rows(normal(2000, 30)))))
    assert note(Moments.of(prepare_rows(normal(2000, 30) + 0.5))) is None
    with pytest.raises(Undefined, match="cancel"):
        outlier_dimensions.value(np.array([[1.0, 2.0], [-1.0, -2.0]]))
