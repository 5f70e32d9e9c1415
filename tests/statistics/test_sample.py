"""The sample: the sequences of smallest hash, and nothing else decides."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.batch import Rows
from isotrope.statistics import Sample, prepare_rows


def splitmix(x: int, seed: int) -> int:
    """The hash, in plain integers (Steele, Lea and Flood 2014)."""
    mask = 2**64 - 1
    z = (x + 0x9E3779B97F4A7C15 * (seed + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def naive(sequence: np.ndarray, size: int, seed: int) -> list[int]:
    """The ids kept, in order: a sequence is kept while those of smaller hash hold fewer than `size` rows."""
    kept, before = [], 0
    for i in sorted(set(sequence.tolist()), key=lambda i: splitmix(i, seed)):
        if before >= size:
            break
        kept.append(i)
        before += int((sequence == i).sum())
    return kept


def texts(lengths: list[int], d: int = 3) -> tuple[np.ndarray, Rows]:
    sequence = np.repeat(np.arange(len(lengths), dtype=np.uint64) * 7, lengths)
    position = np.concatenate([np.arange(k) for k in lengths])
    values = np.stack([sequence.astype(float) + 1, position, np.ones(len(sequence))], axis=1)[:, :d]
    return values.astype(np.float32), Rows(sequence, position=position, token=position % 5)


def sampled(values: np.ndarray, known: Rows, size: int, seed: int, batches: list[list[int]]) -> Sample:
    sample = Sample.empty(values.shape[1], size, seed)
    for ids in batches:
        at = np.concatenate([np.flatnonzero(known.sequence == i) for i in ids])
        sample.add(prepare_rows(values[at], known.take(at)))
    return sample


@pytest.mark.parametrize("size", [1, 5, 40, 41, 99, 1000])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_the_rule_for_any_order_and_batching(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, known = texts(rng.integers(1, 9, 60).tolist())
    expected = naive(known.sequence, size, seed)
    for count in (1, 3, 60):
        ids = rng.permutation(np.unique(known.sequence))
        found = sampled(values, known, size, seed, [part.tolist() for part in np.array_split(ids, count)])
        assert list(dict.fromkeys(found.rows.sequence.tolist())) == expected
        at = np.concatenate([np.flatnonzero(known.sequence == i) for i in expected])
        np.testing.assert_array_equal(found.values, values[at])
        np.testing.assert_array_equal(found.rows.position, known.position[at])
        np.testing.assert_array_equal(found.rows.token, known.token[at])
        assert (found.taken, found.sequences, found.n) == (len(expected), 60, len(at))


def test_reading_between_batches_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    values, known = texts(rng.integers(1, 9, 80).tolist())
    ids = [[int(i)] for i in rng.permutation(np.unique(known.sequence))]
    sample, held = Sample.empty(3, 30), []
    for part in ids:
        at = np.flatnonzero(known.sequence == part[0])
        sample.add(prepare_rows(values[at], known.take(at)))
        held.append((sample.values, sample.values.copy()))
    np.testing.assert_array_equal(sample.values, sampled(values, known, 30, 0, ids).values)
    for handed_out, then in held:
        np.testing.assert_array_equal(handed_out, then)


def test_a_sequence_longer_than_the_sample_is_kept_whole() -> None:
    values, known = texts([50, 50, 50])
    found = sampled(values, known, 10, 0, [[0, 7, 14]])
    assert (found.taken, found.n) == (1, 50)
    assert set(found.rows.sequence.tolist()) == set(naive(known.sequence, 10, 0))


def test_rows_without_sequences_are_sampled_one_by_one() -> None:
    values = np.random.default_rng(0).standard_normal((500, 4))
    sample = Sample.empty(4, 100, seed=2)
    sample.add(prepare_rows(values))
    assert (sample.n, sample.taken, sample.sequences) == (100, 100, 500)
    assert sample.rows.sequence.tolist() == naive(np.arange(500, dtype=np.uint64), 100, 2)
    np.testing.assert_array_equal(sample.values, values[sample.rows.sequence.astype(int)])


def test_rows_left_out_never_enter() -> None:
    values, known = texts([3, 3, 3])
    values[:4] = 0
    sample = sampled(values, known, 100, 0, [[0, 7, 14]])
    assert (sample.n, sample.taken, sample.sequences) == (5, 2, 2)


def test_the_seed_chooses() -> None:
    values, known = texts([2] * 200)
    ids = [np.unique(known.sequence).tolist()]
    chosen = [set(sampled(values, known, 40, seed, ids).rows.sequence.tolist()) for seed in range(5)]
    assert all(len(c) == 20 for c in chosen)
    assert len(set.union(*chosen)) > 60


def test_a_wider_type_widens_the_sample() -> None:
    sample = Sample.empty(2, 10)
    sample.add(prepare_rows(np.ones((2, 2), np.float32), Rows(np.array([0, 1], np.uint64))))
    sample.add(prepare_rows(np.full((2, 2), 0.1), Rows(np.array([2, 3], np.uint64))))
    assert sample.values.dtype == np.float64
    assert sorted(sample.values[:, 0].tolist()) == [0.1, 0.1, 1.0, 1.0]


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one row"):
        Sample.empty(3, 0)
