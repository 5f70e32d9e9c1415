"""Cosines of random pairs and of neighbours, against numpy written out plainly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isotrope.readings.cosine_histogram import compute_background, compute_cosine_table, suggest_cutoffs


def make_unit_rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)) + 0.5
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def test_all_pairs_of_few_rows() -> None:
    unit = make_unit_rows(50, 7)
    expected = [unit[i] @ unit[j] for i in range(50) for j in range(i + 1, 50)]
    np.testing.assert_allclose(compute_background(unit), expected, atol=1e-6)


def test_random_pairs_of_many_rows_are_of_different_rows() -> None:
    unit = make_unit_rows(6_000, 5)
    found = compute_background(unit, seed=1)
    assert len(found) == 2_048**2
    # A row with itself would have a cosine of 1; the mean over all pairs of different rows is known.
    total = unit.sum(axis=0)
    expected = (total @ total - 6_000) / (6_000 * 5_999)
    assert found.mean() == pytest.approx(expected, abs=0.01)
    np.testing.assert_array_equal(found, compute_background(unit, seed=1))


@pytest.mark.parametrize(("pairs", "rates"), [(9_999, []), (10_000, [0.01]), (10**6, [0.01, 0.001, 0.0001])])
def test_cutoffs_that_enough_pairs_support(pairs: int, rates: list[float]) -> None:
    cosines = np.random.default_rng(0).uniform(-1.0, 1.0, size=pairs)
    found = suggest_cutoffs(cosines)
    assert [cut.rate for cut in found] == rates
    for cut in found:
        assert (cosines >= cut.cosine).sum() == cut.beyond
        assert cut.beyond / pairs == pytest.approx(cut.rate, rel=0.02)


def test_the_table_holds_every_pair_once() -> None:
    unit = make_unit_rows(500, 6)
    background, neighbours = compute_background(unit), np.full(500, 1.0)
    table = pd.DataFrame(compute_cosine_table(background, neighbours))
    bins = table[table["kind"] == "background"]
    assert bins["count"].sum() == len(background)
    assert bins["share"].sum() == pytest.approx(1.0)
    assert bins["low"].iloc[0] <= background.min()
    assert bins["high"].iloc[-1] == 1.0
    for line in bins.itertuples():
        inside = (background >= line.low) & (background < line.high)
        assert line.count == inside.sum() or line.high == 1.0
    last = table[table["kind"] == "nearest"].iloc[-1]
    assert last["count"] == 500
    assert set(table["kind"]) == {"background", "nearest", "cut-off"}


def test_equal_rows_have_a_histogram() -> None:
    table = pd.DataFrame(compute_cosine_table(np.ones(10), np.ones(5)))
    assert table["count"].sum() == 15
    assert (table["high"] > table["low"]).all()
