"""Both spectra against numpy's eigenvalues of the two matrices."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.statistics.tridiagonal import eigenvalues, spectra


@pytest.mark.parametrize("d", [1, 2, 3, 50, 200])
@pytest.mark.parametrize("size", [0.0, 1e-8, 1.0, 1e6])
def test_both_spectra(d: int, size: float) -> None:
    rng = np.random.default_rng(d)
    rows = rng.standard_normal((3 * d, d)) * np.geomspace(1, 1e-3, d)
    scatter, mean = rows.T @ rows, size * rng.standard_normal(d)
    kept = scatter.copy()
    found = spectra(scatter, len(rows), mean)
    assert (scatter == kept).all()
    for values, matrix in zip(found, (scatter, scatter + len(rows) * np.outer(mean, mean)), strict=True):
        expected = np.linalg.eigvalsh(matrix)[::-1]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13 * d * expected[0])


def test_the_first_spectrum_keeps_its_digits_beside_a_huge_mean() -> None:
    mean = np.full(40, 1e8)
    found = spectra(np.diag(np.arange(1.0, 41.0)), 1000, mean)
    np.testing.assert_allclose(found[0], np.arange(40.0, 0.0, -1.0), rtol=1e-12)
    # Cauchy: the eigenvalues of the second interlace those of the first.
    assert (found[1][1:] <= found[0][:-1] + 1e-4).all()


@pytest.mark.parametrize("axis", [0, 3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mean_along_an_axis(axis: int, sign: float) -> None:
    mean = np.zeros(5)
    mean[axis] = 2.0 * sign
    expected = np.arange(1.0, 6.0)
    expected[axis] += 3 * 4.0
    np.testing.assert_allclose(spectra(np.diag(np.arange(1.0, 6.0)), 3, mean)[1], np.sort(expected)[::-1], rtol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 7, 90])
def test_eigenvalues_are_those_of_numpy(d: int) -> None:
    rows = np.random.default_rng(d).standard_normal((d, d))
    expected = np.linalg.eigvalsh(rows + rows.T)[::-1]
    np.testing.assert_allclose(eigenvalues(rows + rows.T), expected, atol=1e-13 * d * np.abs(expected).max())


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="got NaN or infinity"):
        spectra(np.full((4, 4), np.nan), 3, np.zeros(4))
