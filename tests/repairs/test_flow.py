"""The flow against automatic differentiation, known densities and the fitted Gaussian."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import InputError, MissingExtra
from isotrope.repairs import load_repair
from isotrope.repairs.flow import Flow
from isotrope.repairs.flow_map import Step, forward

torch = pytest.importorskip("torch")


def turn(d: int) -> Any:
    return np.random.default_rng(99).normal(size=(d, d))


def bent(n: int, d: int, seed: int = 0) -> Any:
    """Normal rows with half of the coordinates bent by the squares of the others, then mixed."""
    x = np.random.default_rng(seed).normal(size=(n, d))
    half = d // 2
    x[:, half : 2 * half] += x[:, :half] ** 2
    return x @ turn(d)


def bent_log_density(rows: Any) -> Any:
    """The true log-density of `bent`: bending keeps volumes, mixing changes them by a constant."""
    d = rows.shape[1]
    x, half = rows @ np.linalg.inv(turn(d)), d // 2
    x[:, half : 2 * half] -= x[:, :half] ** 2
    return stats.norm.logpdf(x).sum(axis=1) - np.linalg.slogdet(turn(d))[1]


def fit_gaussian(rows: Any) -> Any:
    return stats.multivariate_normal(rows.mean(axis=0), np.cov(rows.T))


@pytest.fixture(scope="module")
def fitted() -> Flow:
    return Flow(hidden=64, epochs=12).fit(bent(3000, 6))


def test_it_beats_the_fitted_gaussian_and_comes_near_the_truth(fitted: Flow) -> None:
    new = bent(4000, 6, seed=1)
    found, normal = fitted.score(new), fit_gaussian(bent(3000, 6)).logpdf(new).mean()
    true = bent_log_density(new)
    assert normal + 0.5 * (true.mean() - normal) < found  # most of what a Gaussian misses is found
    assert found < true.mean() + 3 * true.std() / np.sqrt(len(new))  # and nothing that is not there


def test_likelihood_held_out_rises_from_the_gaussians(fitted: Flow) -> None:
    likelihoods = fitted.likelihoods_
    assert likelihoods.max() > likelihoods[0] + 0.5
    expected = fit_gaussian(bent(3000, 6)).logpdf(bent(20_000, 6, seed=2))
    assert abs(likelihoods[0] - expected.mean()) < 4 * expected.std() / np.sqrt(300)


def test_images_of_new_rows_are_far_nearer_a_standard_normal_than_whitened_ones(fitted: Flow) -> None:
    new = bent(20_000, 6, seed=3)
    flow, white = fitted.transform(new), Flow(epochs=0).fit(bent(3000, 6)).transform(new)
    lengths = [stats.kstest(np.square(z).sum(axis=1), "chi2", args=(6,)).statistic for z in (flow, white)]
    skews = [abs(stats.skew(z)).max() for z in (flow, white)]
    assert lengths[0] < 0.25 * lengths[1]
    assert skews[0] < 0.5 * skews[1]


def test_it_finds_nothing_in_gaussian_rows() -> None:
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(8, 8))
    rows, new = rng.normal(size=(2000, 8)) @ shape, rng.normal(size=(4000, 8)) @ shape
    truth = stats.multivariate_normal(np.zeros(8), shape.T @ shape).logpdf(new).mean()
    assert truth - 0.05 < Flow(hidden=32, epochs=5).fit(rows).score(new) <= truth + 1e-3


def test_its_density_has_an_integral_of_one() -> None:
    flow = Flow(hidden=32, epochs=5).fit(bent(1500, 2))
    rows = bent(20_000, 2, seed=1)
    low, high = rows.min(axis=0), rows.max(axis=0)
    low, high = low - (high - low), high + (high - low)
    grid = np.stack(np.meshgrid(*(np.linspace(low[i], high[i], 700) for i in (0, 1))), axis=-1)
    cell = np.prod((high - low) / 699)
    assert np.exp(flow.score_samples(grid.reshape(-1, 2))).sum() * cell == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 17])
def test_the_inverse_and_the_log_determinant_are_exact(d: int) -> None:
    rows = bent(400, d) + 100.0
    flow = Flow(steps=3, hidden=16, epochs=3).fit(rows)
    new = bent(20, d, seed=1) * 2 + 100.0
    np.testing.assert_allclose(flow.inverse_transform(flow.transform(new)), new, rtol=0, atol=1e-9)
    np.testing.assert_allclose(flow.transform(flow.inverse_transform(new - 100.0)), new - 100.0, rtol=0, atol=1e-9)

    found = flow.map_
    steps = [Step(*map(torch.tensor, step)) for step in found.steps]
    mean, whiten = torch.tensor(found.mean), torch.tensor(found.whiten)

    def one(x: Any) -> Any:
        return forward(((x - mean) @ whiten)[None], steps, torch)[0][0]

    for x, log_det in zip(torch.tensor(new), flow.log_det(new), strict=True):
        np.testing.assert_allclose(one(x), flow.transform(x[None].numpy())[0], rtol=0, atol=1e-9)
        jacobian = torch.autograd.functional.jacobian(one, x)
        assert float(torch.linalg.slogdet(jacobian).logabsdet) == pytest.approx(log_det, abs=1e-8)


def spoiled(kind: str, n: int = 400) -> Any:
    """Rows of width 6 that do not spread in all directions."""
    rows = bent(n, 6)
    if kind == "constant column":
        rows[:, 2] = 7.0
    elif kind == "dependent columns":
        rows[:, 4:] = rows[:, :2] @ np.array([[1.0, 2.0], [3.0, -1.0]])
    elif kind == "float32":
        rows[:, 5] = rows[:, :5].sum(axis=1)
        rows = rows.astype(np.float32)
    return rows


@pytest.mark.parametrize(("kind", "rank"), [("constant column", 5), ("dependent columns", 4), ("float32", 5)])
def test_directions_without_spread_are_kept_and_brought_back(kind: str, rank: int) -> None:
    rows = spoiled(kind)
    flow = Flow(steps=2, hidden=16, epochs=2).fit(rows)
    assert flow.map_.rank == rank
    assert np.isfinite(flow.likelihoods_).all()
    new = np.random.default_rng(1).normal(size=(5, 6))
    np.testing.assert_allclose(flow.inverse_transform(flow.transform(new)), new, rtol=0, atol=1e-8)
    step = 1e-5 * np.eye(6)
    jacobian = [(flow.transform(new[:1] + s) - flow.transform(new[:1] - s))[0] / 2e-5 for s in step[:, None]]
    assert flow.log_det(new[:1])[0] == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-4)


@pytest.mark.parametrize(("n", "d"), [(10, 1), (10, 3), (12, 30), (40, 50), (11, 2)])
def test_few_rows_still_give_a_map_with_an_inverse(n: int, d: int) -> None:
    flow = Flow(steps=2, hidden=8, epochs=3).fit(bent(n, d))
    new = bent(9, d, seed=1)
    image = flow.transform(new)
    assert np.isfinite(image).all()
    np.testing.assert_allclose(flow.inverse_transform(image), new, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("n", "d"), [(30, 8), (200, 8), (2000, 20)])
def test_it_starts_as_the_gaussian_of_ledoit_and_wolf(n: int, d: int) -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    from isotrope.repairs.flow import fit_gaussian as start

    rows = bent(n, d) * np.geomspace(1.0, 30.0, d) + 5.0
    mean, whiten, rank = start(rows)
    reference = covariance.LedoitWolf().fit(rows)
    assert rank == d
    np.testing.assert_allclose(mean, reference.location_)
    np.testing.assert_allclose(whiten @ whiten.T @ reference.covariance_, np.eye(d), rtol=0, atol=1e-8)


def test_a_common_mean_far_beyond_the_spread_costs_nothing() -> None:
    rows, new = bent(500, 4), bent(50, 4, seed=1)
    near, far = (Flow(steps=2, hidden=8, epochs=2).fit(rows + shift).score(new + shift) for shift in (0.0, 2.0**20))
    assert far == pytest.approx(near, abs=1e-3)


def test_the_same_seed_gives_the_same_map_and_leaves_the_randomness_of_others_alone() -> None:
    rows = bent(300, 4)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    first, again, other = (Flow(steps=2, hidden=8, epochs=2, seed=s).fit(rows).transform(rows) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert torch.equal(torch.rand(3), expected[0])
    np.testing.assert_array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


def test_the_number_of_threads_changes_nothing_and_is_left_alone() -> None:
    rows = bent(600, 40)
    images = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        images.append(Flow(steps=2, hidden=32, epochs=2).fit(rows).transform(rows))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(1)
    np.testing.assert_array_equal(*images)


def test_float_types_and_tensors_stay_what_they_are(fitted: Flow) -> None:
    rows = bent(10, 6, seed=4)
    image = fitted.transform(rows)
    narrow = fitted.transform(rows.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, image, rtol=0, atol=1e-4)
    tensor = fitted.transform(torch.from_numpy(rows).float())
    assert tensor.dtype == torch.float32
    np.testing.assert_array_equal(tensor.numpy(), narrow)
    half = fitted.transform(torch.from_numpy(rows).bfloat16())
    assert half.dtype == torch.bfloat16
    np.testing.assert_allclose(half.float().numpy(), image, rtol=0, atol=0.2)
    np.testing.assert_array_equal(fitted.log_det(torch.from_numpy(rows)), fitted.log_det(rows))
    assert fitted.transform(rows[:0]).shape == (0, 6)
    assert fitted.score_samples(rows.astype(np.float32)).dtype == np.float64


def test_what_is_saved_is_applied_where_there_is_no_torch(fitted: Flow, tmp_path: Path) -> None:
    rows = bent(20, 6, seed=5)
    fitted.save(tmp_path / "repair")
    np.save(tmp_path / "rows.npy", rows)
    script = f"""
import sys
sys.modules["torch"] = sys.modules["sklearn"] = None
import numpy as np
from isotrope.repairs.flow import Flow
from isotrope.repairs import load_repair
rows = np.load({str(tmp_path / "rows.npy")!r})
flow = load_repair({str(tmp_path / "repair")!r})
np.save({str(tmp_path / "image.npy")!r}, np.stack([flow.transform(rows), flow.inverse_transform(rows)]))
Flow().fit(rows)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stderr.strip().endswith(
        "training a flow needs the package 'torch', which is not installed; run: pip install 'isotrope[models]'."
    )
    assert MissingExtra.__name__ in ran.stderr
    image, back = np.load(tmp_path / "image.npy")
    np.testing.assert_allclose(image, fitted.transform(rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(back, fitted.inverse_transform(rows), rtol=0, atol=1e-12)
    loaded = load_repair(tmp_path / "repair")
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.likelihoods_, fitted.likelihoods_)  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    found = checks.check_estimator(Flow(1, 4, 1), on_fail=None, on_skip=None)
    failed = {c["check_name"]: str(c["exception"]) for c in found if c["status"] == "failed"}
    assert len(found) > 40
    assert failed == {}


def test_it_is_an_estimator_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    copy = clone(Flow(2, 8, 1, seed=3))
    assert copy.get_params() == {"steps": 2, "hidden": 8, "epochs": 1, "seed": 3}
    rows = bent(200, 4)
    line = make_pipeline(StandardScaler(), copy).fit(rows)
    np.testing.assert_allclose(line.inverse_transform(line.transform(rows)), rows, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({}, np.eye(9), "got n_samples=9 rows, expected at least 10 for a flow; give more rows"),
        ({"steps": 0}, np.eye(20), "got steps=0, expected at least 1"),
        ({"epochs": -1}, np.eye(20), "got epochs=-1, expected at least 0"),
        ({}, np.ones((40, 20)), "all 40 rows are the same"),
        ({}, np.full((40, 2), np.inf), "40 of 40 rows hold NaN or inf"),
        ({}, np.ones(40), r"got an array of shape \(40,\), expected rows of shape \(n, d\)"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(options: Any, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Flow(**options).fit(rows)


def test_rows_it_does_not_fit_are_refused(fitted: Flow) -> None:
    with pytest.raises(InputError, match="X has 5 features, but Flow is expecting 6 features"):
        fitted.transform(np.ones((2, 5)))
    with pytest.raises(InputError, match="1 of 2 rows hold NaN or inf"):
        fitted.score_samples(np.array([[np.nan] * 6, [1.0] * 6]))
    with pytest.raises(InputError, match="not fitted yet"):
        Flow().transform(np.ones((2, 6)))
