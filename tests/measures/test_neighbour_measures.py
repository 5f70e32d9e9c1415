"""Measures of neighbours, against scikit-dimension, scikit-learn, brute force and cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from isotrope.errors import Undefined
from isotrope.measures import get
from isotrope.measures.intrinsic_dimension import near_duplicates
from isotrope.statistics import Points, prepare_rows

hubness, lsds = get("hubness"), get("lsds")
twonn, twonn_error = get("intrinsic_dimension_twonn"), get("intrinsic_dimension_twonn_error")
mle, mle_error = get("intrinsic_dimension_mle"), get("intrinsic_dimension_mle_error")


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _surfaces() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, (2, 1500))
    torus = np.stack([np.cos(angle[0]), np.sin(angle[0]), np.cos(angle[1]), np.sin(angle[1])], axis=1)
    return {
        "isotropic": normal(1500, 10),
        "many dimensions": normal(800, 60),
        "torus": torus @ rng.standard_normal((4, 30)) + 100.0,
        "power law": normal(1200, 40) / np.arange(1, 41),
        "plane": normal(1500, 2) @ rng.standard_normal((2, 7)),
    }


SURFACES = _surfaces()
every_surface = pytest.mark.parametrize("surface", SURFACES)


# Intrinsic dimension


@every_surface
def test_intrinsic_dimensions_are_those_of_scikit_dimension(surface: str) -> None:
    import skdim

    rows = SURFACES[surface]
    assert twonn(rows) == pytest.approx(skdim.id.TwoNN().fit(rows).dimension_, rel=1e-6)
    assert mle(rows) == pytest.approx(skdim.id.MLE().fit(rows, n_neighbors=20).dimension_, rel=1e-6)


def test_flat_spaces_have_their_dimension() -> None:
    for d, rows in ((2, SURFACES["plane"]), (2, SURFACES["torus"])):
        for m in (twonn, mle):
            assert m(rows) == pytest.approx(d, abs=0.15)
    line = np.outer(np.random.default_rng(1).uniform(size=3000), [1.0, 2.0])
    assert twonn(line) == pytest.approx(1.0, abs=0.08)


def test_equal_rows_count_once() -> None:
    rows = SURFACES["isotropic"]
    repeated = np.vstack([rows, rows[:300], rows[:50]])
    for m in (twonn, mle, twonn_error, mle_error):
        assert m(repeated) == pytest.approx(m(rows), rel=1e-12)
        assert m.note is not None
        assert "350 rows repeat others" in str(m.note(Points.of(prepare_rows(repeated))))
        assert m.note(Points.of(prepare_rows(rows))) is None


def test_near_duplicates_ruin_twonn_and_are_counted() -> None:
    rows = normal(600, 10)
    near = np.vstack([rows, rows + 1e-7 * normal(600, 10, seed=1)])
    points = Points.of(prepare_rows(near))
    assert near_duplicates(points) == 1200
    assert twonn(points) < 0.2
    assert "1,200 of 1,200 rows have a near-duplicate" in str(twonn.note(points))  # type: ignore[misc]
    assert near_duplicates(Points.of(prepare_rows(rows))) == 0


def test_the_standard_error_of_twonn_is_the_spread_on_ratios_of_the_law() -> None:
    """log μ of independent rows is exponential; the error is the standard deviation of the fitted slope."""
    n, rng = 400, np.random.default_rng(2)
    kept = int(n * 0.9)
    x = np.sort(rng.exponential(size=(20_000, n)), axis=1)[:, :kept]
    slopes = x @ -np.log(1 - np.arange(1, kept + 1) / n) / (x**2).sum(axis=1)
    rows = normal(n, 4)
    assert twonn_error(rows) == pytest.approx(twonn(rows) * slopes.std(), rel=0.05)


def test_the_standard_errors_are_about_the_spread_over_samples() -> None:
    """Neighbourhoods of rows overlap: the true spread is somewhat larger than that of independent ones."""
    for m, error, most in ((twonn, twonn_error, 1.5), (mle, mle_error, 3.0)):
        samples = [normal(500, 3, seed) for seed in range(60)]
        spread = np.std([m(rows) for rows in samples])
        stated = np.mean([error(rows) for rows in samples])
        assert 0.8 < spread / stated < most
    assert mle_error(samples[0]) == pytest.approx(mle(samples[0]) / math.sqrt(500 * 19))


def test_too_few_rows_and_equal_distances_have_no_dimension() -> None:
    with pytest.raises(Undefined, match="at least 21 different rows, found 20"):
        mle.value(normal(20, 3))
    with pytest.raises(Undefined, match="at least 3 different rows, found 2"):
        twonn.value(np.vstack([normal(2, 3)] * 5))
    assert math.isfinite(mle(normal(21, 3)))
    assert math.isfinite(twonn(normal(3, 3)))
    for m in (twonn, mle):
        with pytest.raises(Undefined, match="same distance"):
            m.value(np.eye(40))


# Hubness


@every_surface
def test_hubness_is_that_of_brute_force(surface: str) -> None:
    directions = unit(SURFACES[surface])
    distance = cdist(directions, directions)
    np.fill_diagonal(distance, np.inf)
    times = np.bincount(np.argsort(distance, axis=1)[:, :10].ravel(), minlength=len(directions))
    assert hubness(SURFACES[surface]) == pytest.approx(stats.skew(times), rel=1e-9)


def test_a_hub_is_seen_and_raw_rows_would_see_more() -> None:
    directions = unit(normal(800, 60))
    assert hubness(directions) < 0.7
    rows = directions * np.random.default_rng(0).lognormal(0.0, 1.0, (800, 1))
    assert hubness(rows) == pytest.approx(hubness(directions), rel=1e-9)
    distance = cdist(rows, rows)
    np.fill_diagonal(distance, np.inf)
    raw = np.bincount(np.argsort(distance, axis=1)[:, :10].ravel(), minlength=800)
    assert stats.skew(raw) > 4


def test_repeated_rows_are_no_hubs() -> None:
    rows = normal(600, 20)
    repeated = np.vstack([rows, np.repeat(rows[:1], 900, axis=0), 2.5 * rows[:40]])
    assert hubness(repeated) == pytest.approx(hubness(rows), rel=1e-12)
    assert hubness.note is not None
    assert "940 rows point the same way" in str(hubness.note(Points.of(prepare_rows(repeated))))


def test_hubness_needs_rows_enough_to_differ() -> None:
    with pytest.raises(Undefined, match="more than 11"):
        hubness.value(normal(11, 4))
    assert math.isfinite(hubness(normal(12, 4)))
    with pytest.raises(Undefined, match="found 2"):
        hubness.value(normal(50, 1))


# Local structure discrepancy


def brute_lsds(x: np.ndarray, z: np.ndarray, normalise: bool) -> float:
    x, z = unit(x), unit(z)
    distance = cdist(x, x)
    np.fill_diagonal(distance, np.inf)
    total = 0.0
    for i in range(len(x)):
        near = np.argsort(distance[i])[:12]
        w = np.exp(-(distance[i, near] ** 2) / 0.5)
        total += float(np.sum((z[i] - (w / w.sum() if normalise else w) @ z[near]) ** 2))
    return total / len(x)


@every_surface
def test_lsds_is_that_of_brute_force(surface: str) -> None:
    x = SURFACES[surface][:500]
    z = x @ normal(x.shape[1], 5) + 0.2
    assert lsds(x, z) == pytest.approx(brute_lsds(x, z, True), rel=1e-9)
    assert lsds(x, z, variant="literal") == pytest.approx(brute_lsds(x, z, False), rel=1e-9)


@every_surface
def test_lsds_as_published_is_what_the_authors_ran(surface: str) -> None:
    """Their code: scikit-learn's neighbours, each row its own first, and its barycentre weights."""
    from sklearn.manifold._locally_linear import barycenter_weights
    from sklearn.neighbors import NearestNeighbors

    x = SURFACES[surface][:500]
    z = unit(x @ normal(x.shape[1], 5) + 0.2)
    near = NearestNeighbors(n_neighbors=12).fit(unit(x)).kneighbors(unit(x), return_distance=False)
    weights = barycenter_weights(unit(x), unit(x), near)
    again = np.stack([w @ z[i] for w, i in zip(weights, near, strict=True)])
    assert lsds(x, z, variant="published") == pytest.approx(np.linalg.norm(z - again), rel=1e-6)


def test_lsds_by_hand() -> None:
    """Thirteen rows: each has all others for neighbours, and orthogonal ones weigh the same."""
    x, z = np.eye(13), np.hstack([np.eye(13), np.zeros((13, 2))])
    assert lsds(x, z) == pytest.approx(1 + 1 / 12)  # z_i − the mean of twelve others
    w = math.exp(-4)
    assert lsds(x, z, variant="literal") == pytest.approx(1 + 12 * w**2)
    # A row is its own neighbour: (G + R·I) w = 1 with G = 0 on itself and I + 1 among the eleven others.
    trace = 22.0
    own, other = 1 / (1e-3 * trace), 1 / (12 + 1e-3 * trace)
    off = 1 - own / (own + 11 * other)
    rest = other / (own + 11 * other)
    assert lsds(x, z, variant="published") == pytest.approx(math.sqrt(13 * (off**2 + 11 * rest**2)))


def test_lsds_prefers_what_keeps_neighbours() -> None:
    x = np.repeat(4 * normal(40, 20), 25, axis=0) + normal(1000, 20, seed=1)
    centred = x - x.mean(axis=0)
    whitened = centred @ np.linalg.inv(np.linalg.cholesky(np.cov(centred.T))).T
    scrambled = x[np.random.default_rng(0).permutation(1000)]
    assert lsds(x, x) < lsds(x, whitened) < lsds(x, scrambled)
    # To the letter, the mean of twelve close neighbours has weight far above 1, and destruction looks better.
    literal = [lsds(x, z, variant="literal") for z in (x, scrambled)]
    assert literal[0] > literal[1]


def test_lsds_as_published_grows_with_the_number_of_rows() -> None:
    values = [lsds(normal(n, 6), normal(n, 6), variant="published") for n in (200, 3200)]
    assert values[1] > 2 * values[0]


def test_lsds_needs_thirteen_rows() -> None:
    with pytest.raises(Undefined, match="at least 13 rows, found 12"):
        lsds.value(normal(12, 3), normal(12, 3))
    assert math.isfinite(lsds(normal(13, 3), normal(13, 3)))
    assert math.isfinite(lsds(np.ones((20, 3)), np.ones((20, 3)), variant="published"))
