"""Lengths and directions of rows that repairs divide by their length."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.compute.arrays import compute_lengths, to_unit_rows


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1.0, 1e20, 1e30])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_float32_rows_of_any_length_have_their_direction(size: float, kind: str) -> None:
    rows = (np.random.default_rng(0).standard_normal((20, 6)) * size).astype(np.float32)
    wide = rows.astype(np.longdouble)
    expected = np.sqrt((wide**2).sum(axis=1, keepdims=True))
    given = torch.from_numpy(rows) if kind == "torch" else rows
    np.testing.assert_allclose(np.asarray(compute_lengths(given), np.float64), expected.astype(np.float64), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(to_unit_rows(given)), (wide / expected).astype(np.float64), atol=1e-6)


def test_rows_of_zeros_stay_zero_and_gradients_are_those_of_the_length() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    compute_lengths(rows).sum().backward()
    assert rows.grad is not None
    np.testing.assert_allclose(rows.grad.numpy(), [[0.6, 0.8], [0.0, 0.0]])
    assert to_unit_rows(rows.detach())[1].tolist() == [0.0, 0.0]
