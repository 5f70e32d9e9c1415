"""Moments against numpy's own, where a large common mean and few rows make it hard."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.statistics import Moments, prepare_rows


def merged(rows: np.ndarray, sizes: int = 1000) -> Moments:
    total = Moments.empty(rows.shape[1])
    for start in range(0, len(rows), sizes):
        total += Moments.of(prepare_rows(rows[start : start + sizes]))
    return total


def assert_matches_numpy(found: Moments, rows: np.ndarray, tolerance: float) -> None:
    exact = rows.astype(np.float64)
    units = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    covariance = np.cov(exact.T, bias=True).reshape(rows.shape[1], rows.shape[1])
    size = np.abs(covariance).max()
    assert found.n == len(rows)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0), rtol=1e-12, atol=1e-12 * np.abs(exact).max())
    np.testing.assert_allclose(found.scatter / found.n, covariance, rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(found.unit_mean, units.mean(axis=0), atol=1e-13)
    spread = ((units - units.mean(axis=0)) ** 2).sum()
    np.testing.assert_allclose(found.unit_scatter, spread, atol=1e-13 * len(rows))
    np.testing.assert_allclose(found.energy, (exact**2).sum(), rtol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("batch", [7, 1000, 5000])
def test_a_mean_far_larger_than_the_spread_costs_no_digits(dtype: type, tolerance: float, batch: int) -> None:
    rows = (np.random.default_rng(0).standard_normal((5000, 24)) * 0.1 + 1e3).astype(dtype)
    assert_matches_numpy(merged(rows, batch), rows, tolerance)


def test_a_spread_of_a_few_units_in_the_last_place_is_measured_too() -> None:
    # Rows about 1,000 lie 6e-5 apart in float32: rounding their mean to float32 would show.
    rows = (np.random.default_rng(0).standard_normal((2000, 6)) * 5e-4 + 1e3 + np.arange(6) * 1.1e-5).astype(np.float32)
    assert_matches_numpy(merged(rows, 500), rows, 1e-5)


def test_torch_rows_keep_their_digits_too() -> None:
    rows = (np.random.default_rng(0).standard_normal((3000, 200)) * 0.1 + 1e3).astype(np.float32)
    total = Moments.empty(200)
    for part in torch.from_numpy(rows).split(1000):
        total += Moments.of(prepare_rows(part))
    assert_matches_numpy(total, rows, 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.float32])
def test_other_types(dtype: type) -> None:
    rows = (np.random.default_rng(1).standard_normal((500, 8)) * 20 + 5).astype(dtype)
    rows = rows[np.any(rows != 0, axis=1)]
    assert_matches_numpy(merged(rows, 100), rows, 1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_fewer_rows_than_dimensions(n: int) -> None:
    rows = np.random.default_rng(2).standard_normal((n, 16)) + 2
    found = merged(rows, 3)
    assert_matches_numpy(found, rows, 1e-12) if n > 1 else None
    assert len(found.singular_values) == n
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(rows, compute_uv=False), rtol=1e-9)
    assert (found.eigenvalues[n - 1 :] == 0).all()
    assert found.unresolved == 0


def test_one_row() -> None:
    found = Moments.of(prepare_rows(np.array([[3.0, 4.0]])))
    assert (found.n, found.energy, found.unit_scatter) == (1, 25.0, pytest.approx(0.0, abs=1e-15))
    assert found.constant
    np.testing.assert_array_equal(found.mean, [3.0, 4.0])
    np.testing.assert_array_equal(found.scatter, np.zeros((2, 2)))


def test_rows_left_out_are_counted_through_merging() -> None:
    rows = np.ones((4, 2))
    rows[0], rows[1, 0] = 0, np.nan
    total = Moments.of(prepare_rows(rows)) + Moments.of(prepare_rows(rows[:2])) + Moments.of(prepare_rows(rows))
    assert (total.n, total.zero, total.nonfinite) == (4, 3, 3)


@pytest.mark.parametrize("value", [0.1, 1e3 / 3, 1e-8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_constant_however_they_are_rounded(value: float, dtype: type) -> None:
    rows = np.full((3000, 5), value, dtype=dtype)
    rows[:, 1] *= -7
    assert merged(rows, 1024).constant
    rows[17, 2] *= 1 + 1e-5
    assert not merged(rows, 1024).constant


def test_taking_rows_out_again() -> None:
    rows = np.random.default_rng(3).standard_normal((300, 6)) + 10
    whole, part = Moments.of(prepare_rows(rows)), Moments.of(prepare_rows(rows[:100]))
    before = whole.arrays(), part.arrays()
    rest, expected = whole.without(part).arrays(), Moments.of(prepare_rows(rows[100:])).arrays()
    for name in expected:
        np.testing.assert_allclose(rest[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)
    nothing = part.without(part)
    assert (nothing.n, nothing.energy, nothing.unit_scatter) == (0, 0.0, 0.0)
    assert not nothing.scatter.any()
    for old, now in zip(before, (whole.arrays(), part.arrays()), strict=True):
        for name in old:
            np.testing.assert_array_equal(old[name], now[name])


def test_spectra_against_numpy() -> None:
    rows = np.random.default_rng(4).standard_normal((200, 12)) * np.arange(1, 13) + 3
    found = merged(rows, 64)
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(rows, compute_uv=False), rtol=1e-10)
    expected = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-10)


def test_a_large_mean_does_not_hide_the_other_singular_values_in_fast_precision() -> None:
    rows = (np.random.default_rng(5).standard_normal((4000, 16)) * 0.1 + 1e3).astype(np.float32)
    expected = np.linalg.svd(rows.astype(np.float64), compute_uv=False)
    found = merged(rows)
    assert found.unresolved == 0
    np.testing.assert_allclose(found.singular_values, expected, rtol=1e-4)


def test_what_rounding_made_of_nothing_is_nothing() -> None:
    rng = np.random.default_rng(6)
    rows = (rng.standard_normal((5000, 3)) @ rng.standard_normal((3, 40))).astype(np.float32)
    assert merged(rows).unresolved == 37


def test_spectra_follow_when_rows_are_added() -> None:
    rows = np.random.default_rng(7).standard_normal((60, 4))
    total = Moments.of(prepare_rows(rows[:30]))
    first = total.singular_values
    total += Moments.of(prepare_rows(rows[30:]))
    assert not np.allclose(first, total.singular_values)
    np.testing.assert_allclose(total.singular_values, np.linalg.svd(rows, compute_uv=False))


def test_a_coordinate_whose_square_vanishes_hides_no_other() -> None:
    """MiniLM has coordinates of 1e-32: in float32 their products with others are numbers, their squares are zero."""
    rows = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    rows[:, 3] = 1e-32 * rows[:, 3] - 1e-32
    found = Moments.of(prepare_rows(rows)).eigenvalues
    expected = np.linalg.eigvalsh(np.cov(np.delete(rows, 3, axis=1).astype(np.float64).T))[::-1] * 299
    np.testing.assert_allclose(found[:7], expected, rtol=1e-5)
    assert found[7] == 0
