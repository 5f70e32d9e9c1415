"""Duplicates: counts and groups of equal rows against numpy, beyond the limit too, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isotrope.errors import MergeError, StoreError
from isotrope.sources.batch import Rows
from isotrope.statistics import Duplicates, prepare_rows
from isotrope.statistics import duplicates as module


def hashed(values: np.ndarray, ids: np.ndarray | None = None) -> Duplicates:
    known = None if ids is None else Rows(ids.astype(np.uint64))
    return Duplicates.of(prepare_rows(values, known))


def repeated_rows(seed: int, n: int, different: int, d: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((different, d))[rng.integers(0, different, n)]


def test_counts_and_groups_are_those_of_numpy() -> None:
    values = repeated_rows(0, 500, 200)
    _, which, counts = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    found = hashed(values)
    assert found.repeated == 500 - len(counts)
    assert found.error == 0.0
    expected = [np.flatnonzero(which.ravel() == i).tolist() for i in np.flatnonzero(counts > 1)]
    assert [g.ids for g in found.groups()] == sorted(expected, key=lambda ids: (-len(ids), ids[0]))
    assert all(g.size == len(g.ids) for g in found.groups())
    assert len(found.groups(3)) == 3


def test_equal_numbers_are_equal_rows_in_any_type_and_with_either_zero() -> None:
    row = np.array([[1.5, 0.0, -2.25]])
    same = [row, row.copy(), np.where(row == 0, -0.0, row), row.astype(np.float32), row.astype(np.float16)]
    total = hashed(same[0], np.array([0]))
    for i, other in enumerate(same[1:], 1):
        total += hashed(other, np.array([i]))
    total += hashed(np.nextafter(row, 2.0), np.array([99]))  # one that float32 does not hold
    assert total.repeated == len(same) - 1
    assert total.groups()[0].ids == list(range(len(same)))


def test_rows_that_float32_rounds_together_are_different() -> None:
    assert hashed(np.array([[1.0, 2.0], [1.0 + 1e-12, 2.0]])).repeated == 0


def test_zero_rows_and_rows_with_nan_are_left_out() -> None:
    found = hashed(np.array([[0.0, 0.0], [0.0, 0.0], [np.nan, 1.0], [np.nan, 1.0], [1.0, 1.0]]))
    assert (found.rows, found.repeated) == (1, 0)


def test_a_large_group_keeps_its_count_and_its_smallest_ids() -> None:
    total = Duplicates.empty(2)
    for ids in np.array_split(np.random.default_rng(0).permutation(1_000), 7):
        total += hashed(np.ones((len(ids), 2)), ids)
    assert total.repeated == 999
    assert total.groups() == [(1_000, list(range(module.MEMBERS)))]


def test_beyond_the_limit_the_number_is_estimated_within_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 1_000)
    values = repeated_rows(1, 20_000, 12_000)
    truth = len(values) - len(np.unique(values, axis=0))
    parts = [hashed(values[i::7], np.arange(len(values))[i::7]) for i in range(7)]
    total = sum(parts[1:], parts[0])
    assert total.level >= 4
    assert len(total.table().ids) <= 1_000
    assert 0 < total.error < truth / 5
    assert abs(total.repeated - truth) < 3 * total.error


def test_beyond_the_limit_the_order_of_merging_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 60)
    monkeypatch.setattr(module, "_WAITING", 8)
    values = repeated_rows(2, 400, 250)
    ids = np.arange(400)
    states = []
    for order in itertools.permutations(range(4)):
        total = Duplicates.empty(3)
        for i in order:
            total += hashed(values[i::4], ids[i::4])
        states.append({name: array.tolist() for name, array in total.arrays().items()})
    assert all(state == states[0] for state in states)
    whole = hashed(values).arrays()
    assert {name: array.tolist() for name, array in whole.items()} == states[0]


def test_compact_arrays_keep_groups_and_are_not_merged() -> None:
    found = hashed(repeated_rows(3, 300, 250))
    loaded = Duplicates.from_arrays(found.compact_arrays())
    assert (loaded.repeated, loaded.groups()) == (found.repeated, found.groups())
    assert len(loaded.table().counts) == len(found.groups())
    for left, right in ((loaded, found), (found, loaded)):
        with pytest.raises(MergeError, match="--keep all"):
            left + right


@pytest.mark.parametrize("damage", ["order", "counts", "ids", "rows"])
def test_damaged_arrays_are_refused(damage: str) -> None:
    arrays = {name: array.copy() for name, array in hashed(repeated_rows(4, 50, 40)).arrays().items()}
    if damage == "order":
        arrays["hashes"] = arrays["hashes"][::-1].copy()
    elif damage == "counts":
        arrays["counts"][0] = 0
    elif damage == "ids":
        arrays["ids"] = arrays["ids"][1:]
    else:
        arrays["facts"][1] = 3
    with pytest.raises(StoreError, match="damaged"):
        Duplicates.from_arrays(arrays)
