"""The statistics of the two-sample tests against plain loops, closed forms and scikit-learn."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from isotrope.compute.p_values import count_p_value
from isotrope.two_sample import RowSet, compare_sets
from isotrope.two_sample.neighbourhoods import NeighbourLists
from isotrope.two_sample.pair_means import Products, average_products
from isotrope.two_sample.same_rows import compute_overlap, find_same_rows
from isotrope.two_sample.two_sets import TwoSets


def make_sets(rng: np.random.Generator, *, sequences: bool = False, paired: bool = False) -> TwoSets:
    first, second = rng.normal(size=(14, 3)), rng.normal(size=(14 if paired else 11, 3)) + 0.5
    sets = [RowSet.of_rows(first), RowSet.of_rows(second)]
    if sequences:
        sets = [RowSet(s.rows, s.id, s.id // 3) for s in sets]
    return TwoSets.join(*sets, paired=paired)


CASES = [{}, {"sequences": True}, {"paired": True}, {"sequences": True, "paired": True}]


def average_pairs(sets: TwoSets, rows: np.ndarray, power: int, label: np.ndarray, weight: np.ndarray) -> list[float]:
    """The weighted mean product of pairs of rows of different units: first, second, between."""
    found = []
    for here, there in ((0, 0), (1, 1), (0, 1)):
        total = count = 0.0
        for i, j in product(range(len(rows)), repeat=2):
            if label[i] == here and label[j] == there and sets.unit[i] != sets.unit[j]:
                total += weight[i] * weight[j] * float(rows[i] @ rows[j]) ** power
                count += weight[i] * weight[j]
        found.append(total / count)
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("power", [1, 2])
def test_mean_products_are_those_of_a_plain_loop(case: dict, power: int) -> None:
    rng = np.random.default_rng(3)
    sets = make_sets(rng, **case)
    labels, weights = sets.draw_labels(rng, 4), sets.draw_weights(rng, 4)
    products = Products(sets, sets.rows, power)
    exchanged, resampled = np.array(products.average(labels)), np.array(products.average_weighted(weights))
    for draw in range(4):
        expected = average_pairs(sets, sets.rows, power, labels[:, draw], np.ones(len(labels)))
        assert exchanged[:, draw] == pytest.approx(expected, rel=1e-4, abs=1e-5)
        expected = average_pairs(sets, sets.rows, power, sets.second, weights[:, draw])
        assert resampled[:, draw] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_mean_products_of_centred_rows_need_no_table(case: dict) -> None:
    sets = make_sets(np.random.default_rng(4), **case)
    rows = sets.rows.copy()
    for mask in (sets.second, ~sets.second):
        rows[mask] -= rows[mask].mean(axis=0)
    expected = average_pairs(sets, rows, 1, sets.second, np.ones(len(rows)))
    assert np.ravel(average_products(sets, rows)) == pytest.approx(expected)


@pytest.mark.parametrize("case", CASES)
def test_exchanges_keep_units_together(case: dict) -> None:
    sets = make_sets(np.random.default_rng(5), **case)
    labels = sets.draw_labels(np.random.default_rng(6), 50)
    assert (labels[:, 0] == sets.second).all()
    assert len(np.unique(labels, axis=1).T) > 10
    for unit in range(sets.units):
        rows = np.flatnonzero(sets.unit == unit)
        for draw in labels[rows].T:
            own = sets.second[rows]
            assert (draw == own).all() or (draw == ~own).all() if sets.paired else len(set(draw)) == 1
    if not sets.paired and not case:
        assert (labels.sum(axis=0) == sets.second.sum()).all()


@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_those_of_scikit_learn_outside_the_unit(case: dict) -> None:
    rng = np.random.default_rng(7)
    sets = make_sets(rng, **case)
    lists = NeighbourLists(sets)
    found = NearestNeighbors(n_neighbors=len(sets.rows) - 1, metric="cosine", algorithm="brute").fit(sets.rows)
    order = found.kneighbors(return_distance=False)
    k = lists.which.shape[1]
    for row, listed in enumerate(lists.which):
        others = [other for other in order[row] if sets.unit[other] != sets.unit[row]]
        assert listed.tolist() == others[:k]


@pytest.mark.parametrize("case", CASES)
def test_own_neighbours_are_those_of_a_plain_loop(case: dict) -> None:
    rng = np.random.default_rng(8)
    sets = make_sets(rng, **case)
    lists, labels = NeighbourLists(sets), sets.draw_labels(rng, 3)
    found = lists.count_own(labels)
    for draw, (side, label) in product(range(3), enumerate((0.0, 1.0))):
        drawn = labels[:, draw]
        rows = np.flatnonzero(drawn == label)
        share, chance = [], []
        for row in rows:
            share.append(np.mean(drawn[lists.which[row]] == label))
            others = [other for other in range(len(drawn)) if sets.unit[other] != sets.unit[row]]
            chance.append(np.mean(drawn[others] == label))
        assert found.share[side, draw] == pytest.approx(np.mean(share), abs=1e-6)
        assert found.chance[side, draw] == pytest.approx(np.mean(chance), abs=1e-6)


def test_effects_have_the_values_of_closed_forms() -> None:
    """Means 0.7 standard deviations apart in each of 6 coordinates; a covariance of 2.25 I beside I is 1.25 away."""
    rng = np.random.default_rng(9)
    before = rng.normal(size=(800, 6)) * 3 + 5
    after = (rng.normal(size=(800, 6)) * 1.5 + 0.7) * 3 + 5
    mean, covariance, _ = compare_sets(RowSet.of_rows(before), RowSet.of_rows(after)).tests
    assert mean.effect == pytest.approx(0.7, abs=0.07)
    assert covariance.effect == pytest.approx(1.25, abs=0.2)
    assert mean.low <= 0.7 <= mean.high
    assert covariance.low <= 1.25 <= covariance.high


def test_the_scale_and_the_origin_do_not_matter() -> None:
    rng = np.random.default_rng(10)
    before, after = rng.normal(size=(80, 4)), rng.normal(size=(70, 4)) + 0.3
    plain = compare_sets(RowSet.of_rows(before), RowSet.of_rows(after)).tests
    moved = compare_sets(RowSet.of_rows(before * 1e30 + 7e30), RowSet.of_rows(after * 1e30 + 7e30)).tests
    for one, other in zip(plain[:2], moved[:2], strict=True):
        assert (other.effect, other.p) == (pytest.approx(one.effect, rel=1e-3), one.p)


def test_separate_clouds_and_mixtures() -> None:
    rng = np.random.default_rng(11)
    far = np.zeros(8)
    far[0] = 50.0
    apart = compare_sets(RowSet.of_rows(rng.normal(size=(60, 8)) + far), RowSet.of_rows(rng.normal(size=(60, 8)) - far))
    assert apart.tests[2].effect == pytest.approx(1.0, abs=0.01)
    mixed = compare_sets(RowSet.of_rows(rng.normal(size=(300, 8))), RowSet.of_rows(rng.normal(size=(300, 8))))
    assert mixed.tests[2].effect < 0.05


def test_p_value_counts_the_observed_one() -> None:
    permuted = np.array([0.1, 0.2, 0.3, 0.4])
    assert [count_p_value(v, permuted) for v in (0.05, 0.3, 0.5)] == [1.0, 0.6, 0.2]
    assert count_p_value(0.3 * (1 - 1e-9), permuted) == 0.6


def test_p_value_is_that_of_all_exchanges() -> None:
    """Of all 184,756 ways to divide 20 rows, the share with a distance of the means as large as the true one."""
    rng = np.random.default_rng(12)
    first, second = rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 0.4
    rows = np.concatenate([first, second])
    chosen = np.zeros((184_756, 20))
    np.put_along_axis(chosen, np.array(list(combinations(range(20), 10))), 1.0, axis=1)
    products = rows @ rows.T * (1 - np.eye(20))
    within = [np.einsum("ri,ij,rj->r", part, products, part, optimize=True) for part in (chosen, 1 - chosen)]
    between = np.einsum("ri,ij,rj->r", chosen, products, 1 - chosen, optimize=True)
    distances = within[0] / 90 + within[1] / 90 - 2 * between / 100
    exact = float(np.mean(distances >= distances[0] - 1e-9))  # the first way is the true one
    found = compare_sets(RowSet.of_rows(first), RowSet.of_rows(second)).tests[0].p
    assert 0.01 < exact < 0.5
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 999)


def test_overlap_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(13)
    before = rng.normal(size=(90, 5))
    after = before + 0.5 * rng.normal(size=(90, 5))
    lists = [
        NearestNeighbors(n_neighbors=4, metric="cosine", algorithm="brute").fit(rows).kneighbors(return_distance=False)
        for rows in (before, after)
    ]
    expected = [len(set(one) & set(other)) / 4 for one, other in zip(*lists, strict=True)]
    assert compute_overlap(before, after, 4) == pytest.approx(expected)
    same = find_same_rows(RowSet.of_rows(before), RowSet.of_rows(after))
    assert same is not None
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (before, after)]
    assert same.cosine.value == pytest.approx(np.mean(np.sum(unit[0] * unit[1], axis=1)))


def test_overlap_agrees_with_vecdiff() -> None:
    """vecdiff gives the Jaccard index of two lists, |A ∩ B| / |A ∪ B|: o / (2 − o) of each row's overlap o."""
    snapshots = pytest.importorskip("vecdiff.snapshot", reason="needs vecdiff (pip install vecdiff)")
    checks = pytest.importorskip("vecdiff.checks")
    rng = np.random.default_rng(14)
    before = rng.normal(size=(300, 12)).astype(np.float32)
    after = before + 0.3 * rng.normal(size=(300, 12)).astype(np.float32)
    names = [f"row {i}" for i in range(300)]
    pair = [snapshots.snapshot_from_arrays(ids=names, vectors=rows, model="m") for rows in (before, after)]
    found, _ = checks.check_n1(*pair, k=10, full=True)
    overlap = compute_overlap(before.astype(np.float64), after.astype(np.float64), 10)
    assert found["mean_jaccard"] == pytest.approx(np.mean(overlap / (2 - overlap)), abs=1e-6)
