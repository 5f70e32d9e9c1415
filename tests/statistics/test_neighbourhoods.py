"""Hubs, near-duplicates, outliers and islands against plain loops, scipy and scikit-learn."""

from __future__ import annotations

import numpy as np
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from isotrope.statistics.neighbourhoods import (
    count_occurrences,
    find_island_sizes,
    find_near_duplicate_groups,
    score_outliers,
    to_cosines,
)


def unit_rows(n: int = 120, d: int = 4, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def neighbours(rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and places of the nearest others, by scikit-learn."""
    return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors()


def test_occurrences_are_counted_one_by_one() -> None:
    _, which = neighbours(unit_rows(), 5)
    assert count_occurrences(which, 120).tolist() == [sum(i in row for row in which.tolist()) for i in range(120)]


def test_cosines_are_products_of_unit_rows() -> None:
    rows = unit_rows()
    distance, which = neighbours(rows, 5)
    np.testing.assert_allclose(to_cosines(distance), np.einsum("id,ijd->ij", rows, rows[which]), atol=1e-12)


def test_near_duplicates_are_grouped_as_by_repeated_joining() -> None:
    rng = np.random.default_rng(1)
    rows = np.repeat(unit_rows(40, 8), [5] * 4 + [2] * 6 + [1] * 30, axis=0)
    rows += 1e-3 * rng.standard_normal(rows.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distance, which = neighbours(rows, 10)
    found = find_near_duplicate_groups(which, to_cosines(distance))
    label = np.arange(len(rows))
    pairs = np.argwhere(rows @ rows.T >= 0.99)
    for _ in rows:
        for i, j in pairs:
            label[i] = label[j] = min(label[i], label[j])
    expected = [np.flatnonzero(label == i).tolist() for i in np.unique(label) if (label == i).sum() > 1]
    assert [g.tolist() for g in found] == sorted(expected, key=lambda g: (-len(g), g[0]))
    assert [len(g) for g in found] == [5] * 4 + [2] * 6


def test_outlier_scores_are_deviations_of_the_log() -> None:
    distance = np.random.default_rng(2).lognormal(size=101)
    distance[7] = 1e4
    logs = np.log(distance)
    expected = (logs - np.median(logs)) / stats.median_abs_deviation(logs)
    np.testing.assert_allclose(score_outliers(distance), expected, atol=1e-12)
    np.testing.assert_allclose(score_outliers(distance**2), expected, atol=1e-12)
    assert np.flatnonzero(score_outliers(distance) > 6).tolist() == [7]


def test_equal_distances_have_no_outliers() -> None:
    assert score_outliers(np.array([1.0, 1.0, 1.0, 5.0])).tolist() == [0.0] * 4


def test_islands_are_components_of_mutual_neighbours() -> None:
    rows = unit_rows(90, 3, seed=4)
    _, which = neighbours(rows, 3)
    near = np.zeros((90, 90), bool)
    np.put_along_axis(near, which, True, axis=1)
    mutual = near & near.T
    sizes = []
    for start in range(90):
        reached, todo = {start}, [start]
        while todo:
            for j in np.flatnonzero(mutual[todo.pop()]).tolist():
                if j not in reached:
                    reached.add(j)
                    todo.append(j)
        sizes.append(len(reached))
    assert find_island_sizes(which).tolist() == sizes
    assert min(sizes) < 15 < max(sizes)
