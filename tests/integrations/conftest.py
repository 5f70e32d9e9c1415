"""Rows with a mean and a falling spectrum, and each linear repair fitted on them."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.repairs import AllButTheTop, Centering, Repair, SoftDecay, Whitening

#: Linear repairs of every shape: bent, turned, cut down, turned back, projected, only moved.
LINEAR: list[Repair] = [
    SoftDecay(-0.6),
    Whitening(),
    Whitening(5, 0.5),
    Whitening(form="zca"),
    AllButTheTop(2),
    Centering(),
]


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (3 * rng.normal(size=(400, 24)) / np.arange(1, 25) + 0.5).astype(np.float32)


@pytest.fixture(scope="session", params=LINEAR, ids=repr)
def repair(request: pytest.FixtureRequest, rows: np.ndarray) -> Repair:
    fitted: Repair = request.param.fit(rows)
    return fitted
