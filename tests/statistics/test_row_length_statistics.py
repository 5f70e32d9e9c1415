"""Row lengths: the median, the rows that stand out, and what happens where they were not kept."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import StoreError
from isotrope.sources.batch import Batch, Rows
from isotrope.statistics import Collection, RowLengths, Summary, Wanted, prepare_rows
from isotrope.statistics.row_lengths import KEPT


def _rows(n: int, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.lognormal(0.0, 2.0, size=(n, 1))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 1001])
def test_lengths_against_sorting(n: int) -> None:
    values = _rows(n)
    expected = np.linalg.norm(values, axis=1)
    parts = [RowLengths.of(prepare_rows(values[i::3], Rows(np.arange(n, dtype=np.uint64)[i::3]))) for i in range(3)]
    found = parts[2] + parts[0] + parts[1]
    order = np.argsort(expected)
    assert found.shortest.sequence.tolist() == order[:KEPT].tolist()
    assert found.longest.sequence.tolist() == order[::-1][:KEPT].tolist()
    np.testing.assert_allclose(found.longest.length, expected[order[::-1][:KEPT]], rtol=1e-12)
    np.testing.assert_array_equal(found.longest.values, values[order[::-1][:KEPT]])
    lower = np.sort(expected)[(n - 1) // 2]  # of an even number the lower of the two in the middle
    assert found.median == pytest.approx(lower, rel=0.012)
    limit = 3 * found.median
    # Rows within a bin of the limit may count either way.
    assert (expected < limit / 1.012).sum() <= found.count_below(limit) <= (expected < limit * 1.012).sum()
    assert (expected > limit * 1.012).sum() <= found.count_above(limit) <= (expected > limit / 1.012).sum()
    assert len(found.above(limit).length) == min(KEPT, found.count_above(limit))


def test_equal_lengths_are_ordered_by_id() -> None:
    ids = np.random.default_rng(0).permutation(100).astype(np.uint64)
    found = RowLengths.of(prepare_rows(np.ones((100, 3)), Rows(ids)))
    assert found.shortest.sequence.tolist() == found.longest.sequence.tolist() == list(range(KEPT))


def test_rows_that_are_left_out_are_named() -> None:
    values = _rows(50)
    values[[3, 40]], values[7, 1], values[9, 0] = 0.0, np.nan, np.inf
    found = RowLengths.of(prepare_rows(values[:20])) + RowLengths.of(
        prepare_rows(values[20:], Rows(np.arange(20, 50, dtype=np.uint64)))
    )
    assert found.zero.sequence.tolist() == [3, 40]
    assert found.nonfinite.sequence.tolist() == [7, 9]
    assert found.counts.sum() == 46


@pytest.mark.parametrize(
    "damage",
    [
        {"bins": np.zeros(3, np.int8)},
        {"bins": np.zeros(3, np.int64)},
        {"counts": np.array([1], np.int64)},
        {"width": np.array([4], np.int64)},
        {"width": np.array([2**40], np.int64)},
        {"longest.values": np.full((3, 5), np.nan)},
        {"longest.values": np.ones((3, 4))},
        {"longest.values": np.ones((3, 5), np.int8)},
        {"longest.length": np.array([1.0, 2.0, 3.0])},
        {"shortest.length": np.zeros(3)},
        {"shortest.sequence": np.zeros(2, np.uint64)},
        {"zero.token": np.zeros(17, np.int64)},
    ],
    ids=lambda damage: "-".join(f"{k}:{v.dtype}{v.shape}" for k, v in damage.items()),
)
def test_saved_lengths_that_are_damaged_are_refused(damage: dict[str, np.ndarray]) -> None:
    summary = Wanted().empty(5, Rows(np.empty(0, np.uint64)))
    summary.update(_rows(3), Rows(np.arange(3, dtype=np.uint64)))
    arrays = summary.arrays()
    assert Summary.from_arrays(arrays).lengths is not None
    with pytest.raises(StoreError, match="the file is damaged"):
        Summary.from_arrays(arrays | {f"lengths.{name}": array for name, array in damage.items()})


def _collection(values: np.ndarray, begin: int, group: str) -> Collection:
    collection = Collection(Wanted(sample=10))
    ids = np.arange(begin, begin + len(values), dtype=np.uint64)
    collection.update(Batch({0: values}, Rows(ids, group=np.full(len(values), group))))
    return collection


def test_summaries_that_were_saved_without_lengths_can_be_merged_and_continued() -> None:
    old, new = _collection(_rows(30), 0, "a"), _collection(_rows(30, seed=1), 30, "a")
    old.summaries["a", 0].lengths = None
    for total in (old + new, new + old):
        assert total.summaries["a", 0].lengths is None
        assert total.summaries["a", 0].moments.n == 60
    before = new.summaries["a", 0].arrays()
    assert any(name.startswith("lengths.") for name in before)
    loaded = Summary.from_arrays({name: part for name, part in before.items() if not name.startswith("lengths.")})
    loaded.update(_rows(10, seed=2), Rows(np.arange(100, 110, dtype=np.uint64)))
    assert (loaded.lengths, loaded.moments.n) == (None, 40)
    # A group that came after the interruption has lengths, the sum of all groups has none.
    old += _collection(_rows(30, seed=3), 60, "b")
    assert old.layer(0, "b").lengths is not None
    assert old.layer(0).lengths is None
