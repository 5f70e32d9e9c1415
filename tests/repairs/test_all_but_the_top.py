"""All-but-the-top: against the paper's steps by SVD, its default, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isotrope.errors import InputError
from isotrope.repairs import AllButTheTop

Values = np.ndarray


def rows(n: int = 90, d: int = 7) -> Values:
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)) * np.geomspace(5, 0.1, d) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 3.0


def by_steps(x: Values, count: int) -> Values:
    """Algorithm 1 of Mu and Viswanath: centre, find the principal directions, take the projections on them away."""
    centred = x - x.mean(axis=0)
    top = np.linalg.svd(centred, full_matrices=False)[2][:count]
    for direction in top:
        centred = centred - np.outer(centred @ direction, direction)
    return centred


@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_it_is_the_papers_steps(count: int) -> None:
    assert_allclose(AllButTheTop(count).fit_transform(rows()), by_steps(rows(), count), rtol=0, atol=1e-9)


def test_fewer_rows_than_columns() -> None:
    assert_allclose(AllButTheTop(2).fit_transform(rows(5, 20)), by_steps(rows(5, 20), 2), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("d", "count"), [(7, 1), (100, 1), (101, 2), (250, 3)])
def test_by_default_a_hundredth_of_the_directions(d: int, count: int) -> None:
    gains = AllButTheTop().fit(np.random.default_rng(0).normal(size=(300, d))).gains_
    assert gains.tolist() == [0.0] * count + [1.0] * (d - count)


def test_only_centred_rows_can_come_back() -> None:
    repair = AllButTheTop(0).fit(rows())
    assert_allclose(repair.inverse_transform(repair.transform(rows())), rows(), atol=1e-9)
    with pytest.raises(InputError, match="takes 2 of 7 directions to zero"):
        AllButTheTop(2).fit(rows()).inverse_transform(rows())


def test_something_must_be_left() -> None:
    with pytest.raises(InputError, match="n_directions is 7, expected at most 6"):
        AllButTheTop(7).fit(rows())
    with pytest.raises(InputError, match="n_directions is 4, expected at most 3"):
        AllButTheTop(4).fit(rows(5, 20))
    with pytest.raises(InputError, match="n_directions is -1"):
        AllButTheTop(-1).fit(rows())
