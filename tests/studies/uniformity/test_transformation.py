"""What the paper says of the function of SoftDecay, from Eq. 2 as printed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isotrope.studies.uniformity.transformation import find_turning_point, judge_transformation, study_transformation


def f(x: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Eq. 2, as printed."""
    return -np.log(1 - alpha * (x + alpha)) / alpha


@pytest.mark.parametrize("alpha", [-0.2, -0.6, -1.0])
def test_increments_turn_where_the_formula_says(alpha: float) -> None:
    """Above (K − 1 + a²)/a the smaller value gets the larger increment, below it the smaller one."""
    turn = find_turning_point(-alpha, 100.0)
    x = np.linspace(-alpha, 100.0, 5001)
    increment = 100.0 / f(np.array(100.0), alpha) * f(x, alpha) - x
    change, middle = np.diff(increment), (x[1:] + x[:-1]) / 2
    assert (change[middle < turn - 0.1] > 0).all()
    assert (change[middle > turn + 0.1] < 0).all()
    assert 20 < turn < 30  # far from the ends, so that both sides were looked at
    assert x[increment.argmax()] == pytest.approx(turn, abs=0.03)


@pytest.mark.parametrize("alpha", [-0.2, -0.6, -1.0])
def test_it_is_increasing_concave_and_below_the_identity(alpha: float) -> None:
    x = np.linspace(-alpha, 100.0, 5001)
    values = f(x, alpha)
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) < 0).all()
    assert (x - values).min() == pytest.approx(-alpha)
    assert x[(x - values).argmin()] == pytest.approx(-alpha)


def test_the_largest_value_may_fall_below_the_second() -> None:
    assert float(f(np.array(100.0), -0.6)) == pytest.approx(6.84, abs=0.005)  # below λ₂ = 90


def test_the_study_says_which_properties_hold() -> None:
    found = study_transformation()
    outcomes = [(claim.where, claim.outcome) for claim in found.claims]
    assert outcomes == [
        ("Section 4.2, property 1", "agrees"),
        ("Section 4.2, property 2", "agrees"),
        ("Section 4.2, property 2", "contradicts"),
        ("Section 4.3", "agrees"),
        ("Section 4.3", "contradicts"),
    ]
    frame = found.tables[0].frame
    assert frame["f(100)"].tolist() == pytest.approx([float(f(np.array(100.0), alpha)) for alpha in frame["alpha"]])


def test_another_function_would_be_judged_otherwise() -> None:
    frame = study_transformation().tables[0].frame.copy()
    frame["least slope"], frame["f(100)"], frame["turning point"] = -1.0, 95.0, 0.0
    outcomes = [claim.outcome for claim in judge_transformation(frame)]
    assert outcomes == ["contradicts", "agrees", "agrees", "agrees", "agrees"]
