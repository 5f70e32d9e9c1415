"""Pairs and their effective number, against all pairs written out and against repeated samples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.statistics.pair_cosines import PairCosines, compute_shared_variance


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_all_pairs_are_there_once() -> None:
    rows = unit(np.random.default_rng(0).normal(size=(30, 4)))
    found = PairCosines.of(rows)
    by_pair = {tuple(sorted(ends)): c for *ends, c in zip(found.first, found.second, found.cosines, strict=True)}
    assert set(by_pair) == set(combinations(range(30), 2))
    assert all(c == pytest.approx(rows[i] @ rows[j]) for (i, j), c in by_pair.items())


def test_some_pairs_are_of_disjoint_blocks() -> None:
    rows = unit(np.random.default_rng(0).normal(size=(500, 4)))
    found = PairCosines.of(rows, pairs=5_000, seed=2)
    assert 4_000 < len(found) < 6_500
    assert len({tuple(sorted(ends)) for ends in zip(found.first, found.second, strict=True)}) == len(found)
    assert found.degrees.min() >= found.degrees.max() - 1
    assert found.cosines == pytest.approx(np.einsum("ij,ij->i", rows[found.first], rows[found.second]))


@pytest.mark.parametrize("pairs", [10**6, 900])
def test_queries_meet_documents(pairs: int) -> None:
    rng = np.random.default_rng(0)
    queries, documents = unit(rng.normal(size=(20, 3))), unit(rng.normal(size=(90, 3)))
    found = PairCosines.between(queries, documents, pairs)
    assert len(found) == 1800 if pairs > 1800 else 700 < len(found) < 1100
    expected = np.einsum("ij,ij->i", queries[found.first], documents[found.second - 20])
    assert found.cosines == pytest.approx(expected)


def test_the_shared_variance_is_the_sum_over_pairs_with_a_common_row() -> None:
    rng = np.random.default_rng(0)
    first, second = np.array(list(combinations(range(8), 2))).T
    values = rng.normal(size=len(first))
    expected = sum(
        values[a] * values[b]
        for a in range(len(first))
        for b in range(len(first))
        if {first[a], second[a]} & {first[b], second[b]}
    )
    assert compute_shared_variance(values, first, second, 8) == pytest.approx(max(expected, values @ values))


def test_the_effective_number_tells_how_much_a_share_varies() -> None:
    """Rows of unequal length along one direction: pairs with a common row are far from independent."""
    rng = np.random.default_rng(0)
    shares, effective = [], []
    for _ in range(300):
        rows = unit(rng.normal(size=(60, 6)) + np.array([1.5, 0, 0, 0, 0, 0]))
        found = PairCosines.of(rows)
        shares.append((found.cosines >= 0.7).mean())
        effective.append(found.compute_effective(0.7))
    share = float(np.mean(shares))
    truth = share * (1 - share) / np.var(shares)
    assert truth < 0.3 * 60 * 59 / 2
    assert np.median(effective) == pytest.approx(truth, rel=0.35)


def test_bad_rows_are_refused() -> None:
    with pytest.raises(InputError, match="at least two"):
        PairCosines.of(np.ones((1, 3)))
    with pytest.raises(InputError, match="3 dimensions and the documents 4"):
        PairCosines.between(np.ones((2, 3)), np.ones((2, 4)))
