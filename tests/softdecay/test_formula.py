"""The formula of SoftDecay: numpy and torch agree, the forms are related as they say, and bounds are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from isotrope.softdecay.derivatives import decay_values
from isotrope.softdecay.formula import DOMAINS, decay, find_shifted_alpha, find_violation

VALUES = np.array([0.3, 0.9, 2.0, 40.0])


@pytest.mark.parametrize("form", DOMAINS)
def test_numpy_and_torch_give_the_same_values(form: str) -> None:
    values = VALUES[1:] if form == "paper" else VALUES
    of_torch = decay_values(torch.tensor(values), torch.tensor(0.7, dtype=torch.float64), form, 0.0)
    assert_allclose(of_torch, decay(values, 0.7, form, np), rtol=1e-14)


def test_shifted_is_paper_less_its_value_at_zero() -> None:
    paper = decay(np.array([0.0, *VALUES]), 0.7, "paper", np)
    assert_allclose(decay(VALUES, 0.7, "shifted", np), paper[1:] - paper[0], rtol=1e-12)


def test_clipped_is_paper_where_that_is_positive() -> None:
    assert_allclose(decay(VALUES, 0.7, "clipped", np), np.maximum(decay(VALUES, 0.7, "paper", np), 0.0), rtol=1e-15)


@pytest.mark.parametrize("slope", [1e-9, 0.1, 3.0, 1e9])
def test_alpha_of_a_slope(slope: float) -> None:
    a = -find_shifted_alpha(slope)
    assert 0 < a < 1
    assert a / ((1 - a) * (1 + a)) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("a", [0.3, 0.9])
def test_at_the_bound_of_paper_a_value_of_zero_is_as_large_as_the_largest(a: float) -> None:
    bound = a * (2 - a * a) / (1 - a * a)
    largest, smallest = decay(np.array([bound, 0.0]), a, "paper", np)
    assert abs(smallest) == pytest.approx(largest, rel=1e-12)
    assert find_violation(bound, 0.0, a, "paper") is None
    violation = find_violation(bound * 0.999, 0.0, a, "paper")
    assert violation is not None
    assert violation.which == "largest"
