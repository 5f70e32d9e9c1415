"""Sequence statistics against a plain loop over the pairs of each sequence."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.sources.batch import Rows
from isotrope.statistics import SequenceSpectra, SequenceStatistics, prepare_rows


def texts(seed: int, lengths: list[int], d: int, offset: float = 0.5) -> tuple[np.ndarray, Rows]:
    values = np.random.default_rng(seed).standard_normal((sum(lengths), d)) + offset
    return values, Rows(np.repeat(np.arange(len(lengths), dtype=np.uint64) + 100, lengths))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def naive(values: np.ndarray, known: Rows) -> dict[str, float]:
    sums = dict.fromkeys(("count", "uniformity", "first", "first_with_itself", "inner", "residual"), 0.0)
    for i in dict.fromkeys(known.sequence.tolist()):
        own = values[known.sequence == i]
        t = len(own)
        if t < 2:
            continue
        pairs = [cosine(own[a], own[b]) for a in range(t) for b in range(t) if a != b]
        mean = own.mean(axis=0)
        sums["count"] += 1
        sums["uniformity"] += np.mean(pairs)
        sums["first"] += np.mean([cosine(own[0], own[b]) for b in range(1, t)])
        sums["first_with_itself"] += np.mean([cosine(own[0], own[b]) for b in range(t)])
        sums["residual"] += np.linalg.norm(own - mean) / np.linalg.norm(own)
        sums["inner"] += np.mean([cosine(x, mean) for x in own])
    return sums


@pytest.mark.parametrize("lengths", [[1], [2], [3, 1, 5, 2], [1, 1, 1], [7, 7, 7], [12, 2]])
@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_sums_match_a_loop_over_pairs(lengths: list[int], offset: float) -> None:
    values, known = texts(0, lengths, 5, offset)
    found, expected = SequenceStatistics.of(prepare_rows(values, known)), naive(values, known)
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-12), name
    assert found.directed == found.count
    assert found.rows == sum(lengths)
    assert found.lengths.tolist() == np.bincount(lengths).tolist()
    units = values / np.linalg.norm(values, axis=1, keepdims=True)
    np.testing.assert_allclose(found.units, units.sum(axis=0), atol=1e-12)
    first = [units[known.sequence == 100 + i][0] for i, t in enumerate(lengths) if t > 1]
    np.testing.assert_allclose(found.firsts, np.sum([np.zeros(5), *first], axis=0), atol=1e-12)


def test_opposite_rows_have_a_cosine_but_no_mean_direction() -> None:
    values = np.array([[1.0, 2.0], [-1.0, -2.0], [0.1, 0.3], [-0.1, -0.3], [1.0, 0.0], [1.0, 0.0]])
    found = SequenceStatistics.of(prepare_rows(values, Rows(np.array([0, 0, 1, 1, 2, 2], np.uint64))))
    assert (found.count, found.directed) == (3, 1)
    assert found.uniformity == pytest.approx(-1 - 1 + 1)
    assert found.inner == pytest.approx(1.0)


def test_sequences_can_be_taken_out_again() -> None:
    values, known = texts(1, [3, 4, 1, 6], 4)
    first = known.sequence == 100
    whole = SequenceStatistics.of(prepare_rows(values, known))
    part = SequenceStatistics.of(prepare_rows(values[first], known.take(first)))
    rest, expected = whole.without(part), SequenceStatistics.of(prepare_rows(values[~first], known.take(~first)))
    for name, array in expected.arrays().items():
        np.testing.assert_allclose(rest.arrays()[name], array, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("lengths", "d"), [([2, 5, 3, 5], 4), ([1, 9, 2], 3), ([4, 4], 8), ([3], 1), ([1, 1], 4)])
def test_spectra_match_a_singular_value_decomposition_each(lengths: list[int], d: int) -> None:
    values, known = texts(2, lengths, d)
    found = SequenceSpectra.of(prepare_rows(values, known))
    expected = [
        np.linalg.svd(values[known.sequence == 100 + i], compute_uv=False) for i, t in enumerate(lengths) if t > 1
    ]
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found.sequence, [100 + i for i, t in enumerate(lengths) if t > 1])
    np.testing.assert_array_equal(found.starts, np.cumsum([0, *(len(e) for e in expected)]))
    for k, singular in enumerate(expected):
        own = found.values[found.starts[k] : found.starts[k + 1]]
        np.testing.assert_allclose(own, singular, rtol=1e-9, atol=1e-7 * singular[0])


def test_spectra_of_repeated_rows_end_in_zeros() -> None:
    values = np.tile(np.random.default_rng(3).standard_normal(6), (4, 1))
    found = SequenceSpectra.of(prepare_rows(values, Rows(np.zeros(4, np.uint64))))
    assert found.values[0] == pytest.approx(np.linalg.norm(values))
    assert found.values[1:].tolist() == [0.0, 0.0, 0.0]


def test_spectra_come_in_the_order_of_their_ids_and_can_be_taken_out() -> None:
    values, _ = texts(4, [3, 2, 4], 5)
    ids = np.repeat(np.array([30, 10, 20], np.uint64), [3, 2, 4])
    found = SequenceSpectra.of(prepare_rows(values, Rows(ids)))
    assert found.sequence.tolist() == [10, 20, 30]
    np.testing.assert_allclose(found.values[:2], np.linalg.svd(values[3:5], compute_uv=False))
    np.testing.assert_allclose(found.values[-3:], np.linalg.svd(values[:3], compute_uv=False))
    middle = SequenceSpectra.of(prepare_rows(values[5:], Rows(ids[5:])))
    rest = found.without(middle)
    assert rest.sequence.tolist() == [10, 30]
    np.testing.assert_array_equal(rest.values, found.values[[0, 1, 6, 7, 8]])
