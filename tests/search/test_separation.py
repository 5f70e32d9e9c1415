"""Whether a threshold separates, on planted neighbours and without any."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.search.separation import Separation, compare_best


def separate(rows: np.ndarray) -> Separation | None:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    return compare_best(cosines)


def draw_pairs(noise: float, *, shift: float = 0.0, copies: int = 1) -> np.ndarray:
    """500 rows and others beside them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 64))
    beside = [rows + noise * rng.normal(size=rows.shape) for _ in range(copies)]
    return np.concatenate([rows, *beside]) + shift


@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize("copies", [1, 4])
def test_planted_neighbours_are_separate_even_in_a_narrow_cone(shift: float, copies: int) -> None:
    found = separate(draw_pairs(0.3, shift=shift, copies=copies))
    assert found is not None
    assert found.answer == "yes"
    assert found.overlap < 0.02
    assert found.best > found.background


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_no_threshold_separates_rows_without_neighbours(shift: float) -> None:
    found = separate(np.random.default_rng(0).normal(size=(1000, 64)) + shift)
    assert found is not None
    assert found.answer == "no"
    assert found.low > 0.4


def test_neighbours_that_are_not_closer_than_chance_do_not_separate() -> None:
    found = separate(draw_pairs(6.0))
    assert found is not None
    assert found.answer == "no"


def test_half_of_the_rows_with_a_neighbour_separate_in_part() -> None:
    rows = draw_pairs(0.2)[:750]
    mixed = np.concatenate([rows, np.random.default_rng(1).normal(size=(250, 64))])
    found = separate(mixed)
    assert found is not None
    assert found.answer == "partly"
    assert 0.2 < found.low < found.overlap < found.high < 0.5


def test_the_overlap_is_counted_over_all_pairs() -> None:
    from isotrope.search.separation import _compute_overlap

    rng = np.random.default_rng(0)
    unrelated, best = rng.normal(size=60), rng.normal(size=60) + 1
    expected = np.mean(unrelated[:, None] > best[None, :])
    assert _compute_overlap(unrelated, best)[0] == pytest.approx(expected)


def test_few_documents_give_no_answer() -> None:
    assert separate(np.random.default_rng(0).normal(size=(150, 8))) is None
