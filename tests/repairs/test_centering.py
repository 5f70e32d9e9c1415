"""Centering, plain and scaled, and back again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from isotrope.errors import InputError
from isotrope.repairs import Centering

Values = np.ndarray


def rows(offset: float = 1.0) -> Values:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(80, 6)) + offset) * rng.uniform(0.1, 20, size=(80, 1))


def test_plain() -> None:
    assert_allclose(Centering().fit_transform(rows()), rows() - rows().mean(axis=0), rtol=0, atol=1e-12)


def by_rows(x: Values) -> Values:
    """x − ‖x‖·mean(u), row by row."""
    mean = np.mean([row / np.linalg.norm(row) for row in x], axis=0)
    return np.stack([row - np.linalg.norm(row) * mean for row in x])


def test_scaled_takes_the_mean_of_the_directions_away() -> None:
    repair = Centering(scaled=True).fit(rows())
    assert_allclose(repair.transform(rows()), by_rows(rows()), rtol=0, atol=1e-10)
    assert_allclose(repair.transform(torch.from_numpy(rows())).numpy(), by_rows(rows()), rtol=0, atol=1e-10)
    assert_allclose(repair.transform(3 * rows()), 3 * by_rows(rows()), rtol=0, atol=1e-9)
    assert (repair.transform(np.zeros((1, 6))) == 0).all()


@pytest.mark.parametrize("offset", [0.0, 1.0, 30.0])
def test_scaled_rows_come_back(offset: float) -> None:
    repair = Centering(scaled=True).fit(rows(offset))
    x = np.vstack([rows(offset), -rows(offset), np.zeros((1, 6))])
    assert_allclose(repair.inverse_transform(repair.transform(x)), x, rtol=1e-6, atol=1e-9)
    tensor = torch.from_numpy(x)
    assert_allclose(repair.inverse_transform(repair.transform(tensor)).numpy(), x, rtol=1e-6, atol=1e-9)


def test_scaled_is_no_affine_map_and_says_so() -> None:
    with pytest.raises(InputError, match="not in the row"):
        _ = Centering(scaled=True).fit(rows()).affine_
