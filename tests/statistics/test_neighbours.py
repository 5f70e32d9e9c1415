"""Neighbours are those that brute force finds, on spaces made to confuse products in float32."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from isotrope.statistics.neighbours import _smallest, nearest, without


def _spaces() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((900, 24))
    return {
        "isotropic": normal,
        "more rows than are folded": rng.standard_normal((3000, 6)),
        "far away": 1e-3 * normal + 1e3,
        "tight clusters": np.repeat(rng.standard_normal((9, 24)), 100, axis=0) + 1e-7 * normal,
        "massive coordinate": np.hstack([normal, 3000 + 100 * rng.standard_normal((900, 1))]),
        "a few very long rows": normal * np.where(np.arange(900) % 100 == 0, 1e4, 1.0)[:, None],
        "heavy tails": rng.standard_t(1.2, (900, 10)),
        "very large": normal * 1e60,
        "very small": normal * 1e-60,
        "one dimension": normal[:, :1],
        "three rows": normal[:3],
        "two rows": normal[:2],
    }


SPACES = _spaces()


def brute(rows: np.ndarray, k: int, among: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    apart = rows[:, None] - rows[None] if len(rows) <= 900 else None
    distance = cdist(rows, rows) if apart is None else np.linalg.norm(apart, axis=2)
    np.fill_diagonal(distance, np.inf)
    if among is not None:
        distance[:, ~among] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distance, order, axis=1)


@pytest.mark.parametrize("space", SPACES)
def test_they_are_those_of_brute_force(space: str) -> None:
    rows = SPACES[space]
    k = min(40, len(rows) - 1)
    before = rows.copy()
    found = nearest(rows, k)
    order, distance = brute(rows, k)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-12)
    np.testing.assert_array_equal(found.which, order)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("space", [name for name, rows in SPACES.items() if len(rows) == 900])
def test_rows_of_one_unit_do_not_answer_each_other(space: str) -> None:
    rows = SPACES[space]
    unit = np.sort(np.random.default_rng(1).integers(0, 200, len(rows)))
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    distance[unit[:, None] == unit] = np.inf
    found = nearest(rows, 7, unit=unit)
    assert (unit[found.which] != unit[:, None]).all()
    assert found.distance == pytest.approx(np.sort(distance, axis=1)[:, :7], rel=1e-9)


@pytest.mark.parametrize("space", ["isotropic", "tight clusters", "heavy tails"])
def test_some_ask_and_some_answer(space: str) -> None:
    rows = SPACES[space]
    among = np.random.default_rng(1).random(len(rows)) < 0.3
    asking = np.flatnonzero(among)[::3]
    found = nearest(rows, 7, asking, among)
    order, distance = brute(rows, 7, among)
    np.testing.assert_array_equal(found.which, order[asking])
    np.testing.assert_allclose(found.distance, distance[asking], rtol=1e-12)


@pytest.mark.parametrize("space", ["isotropic", "tight clusters", "heavy tails"])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_leaving_rows_out_of_lists_is_looking_anew(space: str, share: float) -> None:
    """Half of the rows gone leaves many lists too short; they are looked for again."""
    rows = SPACES[space]
    gone = np.random.default_rng(2).random(len(rows)) < share
    found = without(nearest(rows, 16), rows, gone, 10)
    anew = nearest(rows[~gone], 10)
    np.testing.assert_array_equal(found.which, anew.which)
    np.testing.assert_allclose(found.distance, anew.distance, rtol=1e-12)


def test_rows_at_the_same_distance_are_not_preferred_by_their_place() -> None:
    """On the corners of a cube all ties are exact: each corner comes up about equally often."""
    corners = np.array(list(np.ndindex(*(2,) * 9)), dtype=np.float64)
    found = nearest(corners, 12)
    assert (found.distance[:, :9] == 1.0).all()
    assert (found.distance[:, 9:] == np.sqrt(2.0)).all()
    times = np.bincount(found.which[:, 9:].ravel(), minlength=512)
    halves = times[:256].sum(), times[256:].sum()
    assert abs(halves[0] - halves[1]) < 4 * np.sqrt(512 * 3)
    assert times.max() < 15
    np.testing.assert_array_equal(nearest(corners, 12).which, found.which)


@pytest.mark.parametrize("n", [5, 100, 1000, 1003])
def test_the_smallest_numbers_of_long_rows(n: int) -> None:
    values = np.random.default_rng(n).standard_normal((20, n))
    for k in (1, 4):
        expected = np.sort(values, axis=1)[:, :k]
        found = np.take_along_axis(values, _smallest(values, k), axis=1)
        np.testing.assert_array_equal(np.sort(found, axis=1), expected)
