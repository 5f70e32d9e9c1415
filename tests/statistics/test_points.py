"""Points: unit rows, distinct rows, and what is left when a group is left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.spatial.distance import pdist, squareform

from isotrope.errors import InputError, MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics import Image, Points, prepare_rows
from isotrope.statistics.points import NEIGHBOURS, log_kernel_sums


def grouped(rows: np.ndarray, groups: int = 5) -> Points:
    return Points.of(prepare_rows(rows), np.arange(len(rows)) % groups)


ROWS = np.random.default_rng(0).standard_normal((400, 6)) + 0.3


def test_rows_come_in_the_order_of_their_sequences() -> None:
    ids = np.random.default_rng(1).permutation(400).astype(np.uint64)
    points = Points.of(prepare_rows(ROWS, Rows(ids)))
    np.testing.assert_array_equal(points.rows, ROWS[np.argsort(ids)])


def test_what_is_left_is_what_was_never_with_the_rest() -> None:
    whole = grouped(ROWS)
    for group in range(5):
        left, fresh = whole.leave_out(group), Points.of(prepare_rows(ROWS[np.arange(400) % 5 != group]))
        np.testing.assert_array_equal(left.rows, fresh.rows)
        np.testing.assert_array_equal(left.unit.rows, fresh.unit.rows)
        for a, b in ((left.neighbours, fresh.neighbours), (left.unit.neighbours, fresh.unit.neighbours)):
            np.testing.assert_array_equal(a.which, b.which[:, :NEIGHBOURS])
            np.testing.assert_allclose(a.distance, b.distance[:, :NEIGHBOURS])
        for t in (0.5, 0.01):
            sums = special.logsumexp(left.log_kernel(t))
            assert sums == pytest.approx(special.logsumexp(fresh.log_kernel(t)), abs=1e-12)


def test_equal_rows_count_once_and_stay_while_one_group_has_them() -> None:
    rows = np.vstack([ROWS[:60], ROWS[:10], ROWS[:1], np.full((3, 6), -0.0), np.full((3, 6), 1.0)])
    group = np.concatenate([np.arange(60) % 5, np.arange(10) % 4, [3], np.zeros(3), [2, 2, 2]]).astype(np.int64)
    points = Points.of(
        prepare_rows(rows), group[np.concatenate([np.arange(71), [74, 75, 76]])]
    )  # zero rows are dropped
    assert points.n == 74
    assert points.distinct.n == 61
    for g in range(5):
        expected = len(np.unique(points.rows[points.group != g], axis=0))
        assert points.leave_out(g).distinct.n == expected


def test_rows_that_differ_by_rounding_are_the_same_row() -> None:
    rows = np.vstack([ROWS, ROWS * (1 + 1e-15), ROWS[:50] * (1 + 1e-9)])
    assert Points.of(prepare_rows(rows)).distinct.n == 450
    line = np.outer(np.random.default_rng(3).standard_normal(90), ROWS[0])
    assert Points.of(prepare_rows(line)).distinct.n == 90
    assert Points.of(prepare_rows(line)).unit.distinct.n == 2


def test_points_without_equals_are_their_own_distinct_ones() -> None:
    points = Points.of(prepare_rows(ROWS))
    assert points.distinct is points


@pytest.mark.parametrize("t", [0.5, 30.0, 1e-3])
def test_sums_over_pairs_are_those_of_brute_force(t: float) -> None:
    rows, group = ROWS[:300], np.arange(300) % 4
    exponents = -squareform(pdist(rows, "sqeuclidean")) / t
    np.fill_diagonal(exponents, -np.inf)
    found = log_kernel_sums(rows, group, t)
    for a in range(4):
        for b in range(4):
            expected = special.logsumexp(exponents[np.ix_(group == a, group == b)])
            assert found[a, b] == pytest.approx(expected, abs=1e-9)


def test_pairs_are_left_out_together() -> None:
    x, z = ROWS.copy(), ROWS[:, :2].copy()
    x[3], z[5], z[6, 0] = 0.0, 0.0, np.nan
    pair = Image.of(x, z)
    keep = ~np.isin(np.arange(400), (3, 5, 6))
    np.testing.assert_array_equal(pair.rows.rows, x[keep])
    np.testing.assert_array_equal(pair.image.rows, z[keep])


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="got 400 rows and an image of 399"):
        Image.of(ROWS, ROWS[1:])
    with pytest.raises(MergeError, match="width"):
        Points.empty(3) + Points.empty(4)
