"""SoftDecay: against numpy's SVD, in its three forms, at every kind of alpha, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group

from isotrope.errors import InputError
from isotrope.repairs import ALPHAS, SoftDecay, search_alpha, soft_decay
from isotrope.softdecay.formula import decay
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Moments, prepare_rows

RNG = np.random.default_rng(0)

Values = np.ndarray


def f(x: float, alpha: float) -> float:
    """The paper's Eq. 2, as printed."""
    return -math.log(1 - alpha * (x + alpha)) / alpha


FORMS = {
    "paper": f,
    "clipped": lambda x, alpha: max(f(x, alpha), 0.0) if x > -alpha else 0.0,
    "shifted": lambda x, alpha: f(x, alpha) - f(0.0, alpha),
}


def by_svd(rows: Values, alpha: float, form: str = "paper", rank: int | None = None) -> Values:
    """U f(Σ) Vᵀ with the largest singular value kept; what is beyond the rank stays zero."""
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    bent = np.array([FORMS[form](x, alpha) if i < (rank or len(s)) else 0.0 for i, x in enumerate(s)])
    return (u * (bent * s[0] / bent[0])) @ vt


def spread(n: int = 60, d: int = 8) -> Values:
    """Rows with a mean and with singular values from 20 down to 0.25: above and below the a of most alphas here."""
    normal = np.random.default_rng(n).normal(size=(n, d))
    return normal @ np.diag(np.geomspace(3, 0.02, d)) @ ortho_group.rvs(d, random_state=1) + 0.5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [-0.2, -0.4, -0.6, -0.8, -0.95])
def test_the_map_is_the_decomposition(alpha: float, form: str) -> None:
    rows = spread()
    assert_allclose(SoftDecay(alpha, form).fit_transform(rows), by_svd(rows, alpha, form), rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [-1.0, -1.3, -3.0])
@pytest.mark.parametrize("form", ["paper", "clipped"])
def test_at_and_beyond_minus_one(alpha: float, form: str) -> None:
    rows = 40 * spread()
    assert_allclose(SoftDecay(alpha, form).fit_transform(rows), by_svd(rows, alpha, form), rtol=0, atol=1e-9)


def test_at_minus_one_it_is_the_logarithm() -> None:
    rows = np.diag([math.e**3, math.e, 1.0])
    bent = np.diag(SoftDecay(-1.0, form="paper").fit_transform(rows))
    assert_allclose(bent, math.e**3 * np.array([1.0, 1 / 3, 0.0]), atol=1e-12)


def test_values_below_a_turn_round_and_are_clipped_or_not() -> None:
    rows = np.diag([5.0, 0.6, 0.3])
    assert_allclose(np.diag(SoftDecay(-0.6, form="paper").fit_transform(rows))[1], 0.0, atol=1e-12)
    assert SoftDecay(-0.6, form="paper").fit_transform(rows)[2, 2] < -0.1
    assert SoftDecay(-0.6, "clipped").fit_transform(rows)[2, 2] == pytest.approx(0.0)
    assert SoftDecay(-0.6, "shifted").fit_transform(rows)[2, 2] > 0.1


@pytest.mark.parametrize("alpha", [-1e-3, -1e-6, -1e-12, -1e-99, -1e-320, 0.0])
def test_near_zero_it_is_the_identity(alpha: float) -> None:
    rows = spread()
    assert_allclose(SoftDecay(alpha, form="paper").fit_transform(rows), rows, rtol=0, atol=50 * abs(alpha) + 1e-9)


@pytest.mark.parametrize(("n", "d", "rank"), [(60, 8, 3), (8, 30, 5), (30, 30, 29)])
def test_rank_deficient_rows_keep_their_rank(n: int, d: int, rank: int) -> None:
    rng = np.random.default_rng(rank)
    rows = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    repair = SoftDecay(-0.6, form="paper").fit(rows)
    assert len(repair.gains_) == rank
    assert_allclose(repair.transform(rows), by_svd(rows, -0.6, rank=rank), rtol=0, atol=1e-9)
    _, values, vectors = np.linalg.svd(rows)
    # From squares, the weakest direction is known to some epsilons of the squared condition, times its gain.
    blur = 1e-14 * (values[0] / values[rank - 1]) ** 2 * np.abs(repair.gains_).max()
    assert_allclose(repair.affine_(vectors[rank:]), 0.0, atol=blur)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("height", [0.5, 100.0])
def test_a_mean_among_few_directions_is_no_direction_more(seed: int, height: float) -> None:
    """Rounding alone lifts such a mean out of the span of the others, and the formula would make much of that."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(20, 6)))[0].T
    scale = np.geomspace(3.0, 3e-4, 6)
    rows = rng.normal(size=(60, 6)) * scale @ basis + height * rng.normal(size=6) @ basis
    repair = SoftDecay(-0.6, form="paper").fit(rows)
    assert len(repair.gains_) == 6
    size = np.linalg.norm(rows, 2)
    assert_allclose(repair.transform(rows), by_svd(rows, -0.6, rank=6), rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize(("height", "kept"), [(1e-11, 4), (1e-14, 3)])
def test_by_default_what_rounding_could_have_made_stays_zero(height: float, kept: int) -> None:
    """A coordinate that is always the same has no spread, and a singular value of its own, against max(n, d)·eps."""
    rows = np.column_stack([RNG.normal(size=(1_000, 3)), np.full(1_000, height)])
    assert len(SoftDecay(-0.6, form="paper").fit(rows).gains_) == kept
    assert len(SoftDecay(-0.6, tolerance=0.0, form="paper").fit(rows).gains_) == 4


def test_fewer_rows_than_dimensions() -> None:
    rows = RNG.normal(size=(12, 40)) + 1.0
    assert_allclose(SoftDecay(-0.6, form="paper").fit_transform(rows), by_svd(rows, -0.6), rtol=0, atol=1e-9)


def test_a_mean_far_larger_than_the_spread() -> None:
    rows = RNG.normal(size=(400, 16)) * 0.1 + 1_000
    assert_allclose(SoftDecay(-0.6, form="paper").fit_transform(rows), by_svd(rows, -0.6), rtol=0, atol=1e-6)


def test_a_tolerance_leaves_weak_directions_out() -> None:
    rows = np.diag([100.0, 10.0, 2.0])
    assert SoftDecay(tolerance=0.021, form="paper").fit(rows).transform(rows)[2, 2] == pytest.approx(0.0)
    assert SoftDecay(tolerance=0.019, form="paper").fit(rows).transform(rows)[2, 2] > 1.0


def test_a_matrix_of_zeros_stays_as_it_is() -> None:
    zeros = np.zeros((5, 3))
    assert (SoftDecay(form="paper").fit_transform(zeros) == zeros).all()


def test_the_largest_singular_value_and_the_order_of_all_are_kept() -> None:
    rows = spread()
    before, after = (np.linalg.svd(x)[1] for x in (rows, SoftDecay(-0.6, "shifted").fit_transform(rows)))
    assert after[0] == pytest.approx(before[0], rel=1e-10)
    assert (after[1:] > before[1:]).all()


@pytest.mark.parametrize("form", FORMS)
def test_each_direction_keeps_its_rank_among_all(form: str) -> None:
    """The strength of each right singular vector of the rows in the repaired rows, in the order of the vectors."""
    rows = 4 * spread()  # all singular values above a: below it the form of the paper turns directions round
    _, before, directions = np.linalg.svd(rows, full_matrices=False)
    assert before[-1] > 0.6
    after = np.linalg.norm(SoftDecay(-0.6, form).fit_transform(rows) @ directions.T, axis=0)
    assert (np.diff(after) < 0).all()
    assert after[0] == pytest.approx(before[0], rel=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_the_function_is_strictly_increasing(form: str) -> None:
    grid = np.linspace(0.2 if form == "clipped" else 0.0, 50.0, 2001)[1:]
    assert (np.diff(decay(grid, 0.2, form, np)) > 0).all()
    assert_allclose(decay(grid, 0.2, form, np), [FORMS[form](x, -0.2) for x in grid], rtol=1e-12)


def test_reference_rows_bend_any_number_of_rows_alike() -> None:
    rows = spread()
    repeated = np.tile(rows, (10, 1))
    once, ten = (SoftDecay(reference_rows=60, form="paper").fit(x) for x in (rows, repeated))
    assert_allclose(once.affine_.weight, ten.affine_.weight, rtol=0, atol=1e-9)
    assert_allclose(once.affine_.weight, SoftDecay(form="paper").fit(rows).affine_.weight, rtol=0, atol=1e-12)
    other = SoftDecay(form="paper").fit(repeated)
    assert np.abs(other.affine_.weight - once.affine_.weight).max() > 0.01
    scaled = SoftDecay(reference_rows=15, form="paper").fit(rows)
    assert_allclose(scaled.transform(rows), 2 * by_svd(rows / 2, -0.6), rtol=0, atol=1e-9)


def test_unit_rows_where_asked() -> None:
    rows = RNG.normal(size=(50, 6)) * RNG.uniform(1, 9, size=(50, 1)) + 1
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    repair = SoftDecay(-0.6, normalize=True, form="paper").fit(rows)
    assert_allclose(repair.transform(rows), by_svd(unit, -0.6), rtol=0, atol=1e-9)
    assert_allclose(repair.transform(torch.from_numpy(rows)).numpy(), by_svd(unit, -0.6), rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="divided by their length"):
        repair.inverse_transform(rows)
    with pytest.raises(InputError, match="not in the row"):
        _ = repair.affine_
    with pytest.raises(InputError, match="do not say those of unit rows"):
        SoftDecay(normalize=True, form="paper").fit(Moments.of(prepare_rows(rows)))


def test_rows_of_float32_multiplied_in_float32_give_nearly_the_same() -> None:
    rows = (RNG.normal(size=(3_000, 32)) @ np.diag(np.geomspace(1, 0.05, 32))).astype(np.float32)
    exact, fast = SoftDecay(form="paper").fit(ArraySource(rows, exact=True)), SoftDecay(form="paper").fit(rows)
    assert fast.moments_.resolution > exact.moments_.resolution
    assert_allclose(fast.transform(rows), exact.transform(rows), rtol=0, atol=1e-4)


@pytest.mark.parametrize("a", [0.2, 0.6, 0.9])
def test_the_bound_is_where_small_values_overtake_the_largest(a: float) -> None:
    bound = a * (2 - a * a) / (1 - a * a)
    assert soft_decay(np.array([bound]), -a, "paper")[0] == pytest.approx(-soft_decay(np.array([0.0]), -a, "paper")[0])
    inside = np.diag([bound * 1.001, 1e-4 * bound])
    assert np.abs(SoftDecay(-a, form="paper").fit_transform(inside)).max() == pytest.approx(bound * 1.001)
    with pytest.raises(InputError, match=r"expected at least a\(2 − a²\)/\(1 − a²\) = "):
        SoftDecay(-a, form="paper").fit(np.diag([bound * 0.999, 1e-4 * bound]))


@pytest.mark.parametrize(
    ("parameters", "rows", "says"),
    [
        ({"alpha": 0.3, "form": "paper"}, np.eye(3) * 9, "expected alpha < 0"),
        ({"alpha": math.nan, "form": "paper"}, np.eye(3) * 9, "expected alpha < 0"),
        ({"alpha": -math.inf, "form": "paper"}, np.eye(3) * 9, "expected alpha < 0"),
        ({"alpha": 0.3, "form": "clipped"}, np.eye(3) * 9, "expected alpha < 0"),
        ({"alpha": -1.0, "form": "shifted"}, np.eye(3) * 9, "expected −1 < alpha < 0"),
        ({"alpha": 0.0, "form": "shifted"}, np.eye(3) * 9, "expected −1 < alpha < 0"),
        ({"alpha": -1.5, "form": "paper"}, np.diag([9.0, 0.8]), "expected all above a − 1/a = 0.833333"),
        ({"alpha": -1.5, "form": "paper"}, np.diag([1.4, 1.3]), "expected above a = 1.5"),
        ({"alpha": -0.6, "form": "clipped"}, np.diag([0.6, 0.5]), "expected above a = 0.6"),
        ({"form": "papr"}, np.eye(3) * 9, "there is no form 'papr'"),
        ({"reference_rows": 0}, np.eye(3) * 9, "reference_rows is 0"),
        ({"tolerance": 1.0}, np.eye(3) * 9, "tolerance is 1.0"),
    ],
)
def test_what_is_outside_its_domain_is_refused(parameters: dict, rows: Values, says: str) -> None:
    with pytest.raises(InputError, match=says):
        SoftDecay(**parameters).fit(rows)


def test_a_tolerance_brings_rows_into_the_domain() -> None:
    rows = np.diag([9.0, 0.8])
    assert_allclose(SoftDecay(-1.5, tolerance=0.1, form="paper").fit_transform(rows), np.diag([9.0, 0.0]), atol=1e-12)


def test_the_best_alpha_is_found_in_one_pass() -> None:
    rows = spread(400) * 10
    seen = []

    def score(repair: SoftDecay) -> float:
        seen.append(repair.alpha)
        return -abs(float(repair.gains_[3]) - float(SoftDecay(-0.8, form="paper").fit(rows).gains_[3]))

    found = search_alpha(rows, score, form="paper")
    assert (found.alpha, tuple(seen)) == (-0.8, ALPHAS)
    assert search_alpha(np.diag([1.5, 1.0]), lambda r: -r.alpha, alphas=ALPHAS[:4], form="paper").alpha == -0.4
    with pytest.raises(InputError, match="the largest singular value"):
        search_alpha(np.diag([0.1, 0.2]), lambda r: 0.0, form="paper")
    with pytest.raises(InputError, match="no alpha to try"):
        search_alpha(rows, score, alphas=())
