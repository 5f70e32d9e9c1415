"""What neighbours tell of rows, against scikit-learn and against rows whose defects are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from isotrope.readings.row_neighbours import HUB, RowNeighbours, find_hub_threshold, list_neighbour_rows
from isotrope.readings.unusual_rows import UnusualRows
from isotrope.statistics import Duplicates, Moments, Points, RowLengths, Sample, Summary, prepare_rows

K = 10


def make_points(rows: np.ndarray) -> Points:
    return Points.of(prepare_rows(rows))


def test_numbers_of_rows_against_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 8)) * rng.uniform(0.5, 3.0, size=(400, 1)) + 0.3
    found = RowNeighbours.of(make_points(rows))
    search = NearestNeighbors(n_neighbors=K + 1, metric="cosine").fit(rows)
    distance, which = search.kneighbors(rows)
    np.testing.assert_array_equal(found.row, np.arange(400))
    np.testing.assert_array_equal(found.nearest, which[:, 1])
    np.testing.assert_allclose(found.cosine, 1.0 - distance[:, 1], atol=1e-12)
    np.testing.assert_array_equal(found.occurrences, np.bincount(which[:, 1:].ravel(), minlength=400))
    np.testing.assert_allclose(found.norm, np.sqrt((rows**2).sum(axis=1)))
    logs = np.log(np.sqrt(2.0 * distance[:, K]))
    expected = (logs - np.median(logs)) / stats.median_abs_deviation(logs)
    np.testing.assert_allclose(found.score, expected, atol=1e-6)
    assert (found.group == -1).all()


def test_fewer_rows_than_neighbours() -> None:
    found = RowNeighbours.of(make_points(np.eye(4) + 0.1))
    assert found.k == 3
    assert found.occurrences.tolist() == [3, 3, 3, 3]


def test_rows_of_one_direction_are_one_for_the_others() -> None:
    """Copies fill nobody's list: numbers are those of the rows without them, and copies share them."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(300, 6))
    copies = np.concatenate([rows, rows[:5] * 3.0, rows[:5]])
    alone, found = RowNeighbours.of(make_points(rows)), RowNeighbours.of(make_points(copies))
    np.testing.assert_array_equal(found.occurrences[:300], alone.occurrences)
    np.testing.assert_array_equal(found.occurrences[300:305], alone.occurrences[:5])
    np.testing.assert_allclose(found.score[305:], alone.score[:5])
    np.testing.assert_allclose(found.cosine[[0, 300, 305]], 1.0)
    assert found.nearest[[0, 300, 305]].tolist() == [300, 305, 0]
    np.testing.assert_array_equal(found.nearest[5:300], alone.nearest[5:])
    np.testing.assert_array_equal(found.group[:5], found.group[300:305])
    assert (found.group >= 0).sum() == 15


def list_rows(rows: np.ndarray) -> tuple[dict, dict]:
    usable = prepare_rows(rows)
    sample = Sample.empty(rows.shape[1], 20_000)
    sample.add(usable)
    summary = Summary(
        Moments.of(usable), sample=sample, lengths=RowLengths.of(usable), duplicates=Duplicates.of(usable)
    )
    unusual = UnusualRows(lambda tokens: None)
    unusual.add(0, summary, {})
    found = RowNeighbours.of(Points.of(sample.to_usable_rows()))
    rows, counts = list_neighbour_rows(found, unusual.rows.get("duplicates", []), 0)
    return unusual.rows | rows, counts | unusual.counts


def test_isotropic_rows_have_no_hub_outlier_or_duplicate() -> None:
    """At any width, also where there are more dimensions than rows."""
    for n, d in ((1500, 16), (1500, 384), (300, 600)):
        rows, counts = list_rows(np.random.default_rng(d).normal(size=(n, d)))
        assert set(rows) <= {"never_found"}
        assert counts["hub_rows"] == counts["outlier_rows"] == counts["near_duplicate_rows"] == 0
        assert counts["examined_rows"] == n


def test_a_count_of_a_hub_is_beyond_chance() -> None:
    """Independent choices are Poisson: 5 k lists are far beyond the largest of a billion rows."""
    assert stats.poisson.sf(HUB * K - 1, K) < 1e-9


@pytest.mark.parametrize("shape", [0.8, 2.0, 5.0])
def test_the_threshold_of_hubs_is_the_tail_of_a_negative_binomial_law(shape: float) -> None:
    """Counts of rows whose rates follow a gamma distribution."""
    rng = np.random.default_rng(6)
    n = 20_000
    counts = rng.poisson(K * rng.gamma(shape, 1.0 / shape, size=n))
    expected = stats.nbinom.isf(0.01 / n, shape, shape / (shape + K)) + 1
    assert find_hub_threshold(counts, K) == pytest.approx(max(expected, HUB * K), rel=0.12)
    # A few hubs do not raise it.
    counts[:10] = 2_000
    assert find_hub_threshold(counts, K) == pytest.approx(max(expected, HUB * K), rel=0.12)


def test_planted_rows_are_listed() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2000, 64))
    rows[100:120] = rows[7]
    rows[300] = rows[8] * 4.0 + 1e-3
    # Rows near one direction; ten rows in the middle of them are nearest to all of them.
    rows[1000:1600] = 8.0 * np.eye(64)[0] + rng.normal(size=(600, 64))
    rows[1600:1610] = 8.0 * np.eye(64)[0] + 0.01 * rng.normal(size=(10, 64))
    found, counts = list_rows(rows)
    assert {row["id"] for row in found["hubs"]} == set(range(1600, 1610))
    assert counts["hub_rows"] == 10
    groups: dict[int, list] = {}
    for row in found["duplicates"]:
        groups.setdefault(row["group"], []).append(row)
    equal = groups.pop(0)
    assert [row["id"] for row in equal] == [7, *range(100, 120)]
    assert all(row["equal"] and row["size"] == 21 for row in equal)
    assert [8, 300] in [[row["id"] for row in rows] for rows in groups.values()]
    assert not any(row["equal"] for rows in groups.values() for row in rows)
    assert counts["duplicate_rows"] == 20


def test_an_outlier_is_listed_and_never_found() -> None:
    rng = np.random.default_rng(2)
    rows = 5.0 * np.eye(12)[0] + 0.3 * rng.normal(size=(800, 12))
    rows[17] = -np.eye(12)[3]
    found, counts = list_rows(rows)
    assert found["outliers"][0]["id"] == found["never_found"][0]["id"] == 17
    assert found["outliers"][0]["outlier_score"] > 6.0
    assert found["outliers"][0]["occurrences"] == 0
    assert counts["never_found_rows"] >= 1


@pytest.mark.parametrize("count", [150, 90])
def test_lists_are_capped_and_counts_are_not(count: int) -> None:
    rows = np.random.default_rng(4).normal(size=(600, 5))
    rows[:count] = rows[0]
    found, counts = list_rows(rows)
    assert len(found["duplicates"]) <= 100
    assert counts["duplicate_rows"] == count - 1
