"""The additive quantizer against brute force, plain least squares and faiss."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isotrope.compute.threads import open_pool
from isotrope.quantization import additive as module
from isotrope.quantization import quantize
from isotrope.quantization.additive import quantize_additive, solve_codebooks
from isotrope.quantization.search import Search
from testkit.clustered import clustered


def squares(rows: np.ndarray, words: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """‖x − x'‖² of each row, in float64."""
    sums = sum(words[m].astype(np.float64)[codes[m]] for m in range(len(words)))
    return np.asarray(np.square(rows - sums).sum(axis=1))


def problem(n: int, m: int, k: int, d: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    rows, words = rng.standard_normal((n, d), np.float32), rng.standard_normal((m, k, d), np.float32)
    return rows, words, rng.integers(0, k, (m, n))


def test_codebooks_are_the_least_squares_solution() -> None:
    rows, _, codes = problem(200, 3, 5, 4)
    codes[0, codes[0] == 2] = 1  # a cell that no row lies in
    design = np.zeros((200, 15))
    for m in range(3):
        design[np.arange(200), 5 * m + codes[m]] = 1
    expected = np.linalg.lstsq(design, rows.astype(np.float64))[0]
    with open_pool() as pool:
        words = solve_codebooks(rows, codes, 5, pool)
    # Codebooks may trade a common vector, but the smallest of all solutions is one.
    np.testing.assert_allclose(words.reshape(15, 4), expected, atol=1e-6)


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_a_search_never_makes_a_row_worse(rounds: int, m: int) -> None:
    rows, words, codes = problem(300, m, 8, 6)
    before = squares(rows, words, codes)
    found = Search(words).refine(rows, codes, rounds, np.random.default_rng(0))
    after = squares(rows, words, found)
    assert (after <= before + 1e-4).all()
    assert after.mean() < 0.9 * before.mean()


def test_a_search_finds_the_best_codes_of_nearly_all_rows() -> None:
    rows, words, codes = problem(500, 2, 4, 3)
    best = np.min([squares(rows, words, np.tile([[a], [b]], 500)) for a, b in product(range(4), repeat=2)], axis=0)
    found = Search(words).refine(rows, codes, 16, np.random.default_rng(0))
    assert (squares(rows, words, found) <= best + 1e-4).mean() > 0.99


def test_a_sweep_ends_where_no_single_change_helps() -> None:
    rows, words, codes = problem(200, 2, 6, 4)
    found = codes
    for _ in range(10):
        found = Search(words).refine(rows, found, 0, np.random.default_rng(0))
    reached = squares(rows, words, found)
    for m, code in product(range(2), range(6)):
        other = found.copy()
        other[m] = code
        assert (squares(rows, words, other) >= reached - 1e-4).all()


@pytest.mark.parametrize("m", [1, 3])
def test_torch_finds_what_numpy_finds(m: int) -> None:
    """The path of a GPU, here on the CPU: only rounding may decide between codes that are equally good."""
    rows, words, codes = problem(400, m, 8, 6)
    plain, torch = (Search(words, device).refine(rows, codes, 3, np.random.default_rng(0)) for device in (None, "cpu"))
    assert (plain == torch).mean() > 0.99
    np.testing.assert_allclose(squares(rows, words, plain).mean(), squares(rows, words, torch).mean(), rtol=1e-3)


def test_the_whole_of_it_on_a_torch_device(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = clustered(900, 8)
    plain = quantize(rows, codebooks=2, size=16)
    monkeypatch.setattr(module, "find_gpu", lambda: "cpu")
    q = quantize(rows, codebooks=2, size=16)
    assert np.square(q.errors(rows)).sum() == pytest.approx(np.square(plain.errors(rows)).sum(), rel=0.05)


def test_threads_change_nothing() -> None:
    rows = clustered(3000, 8)
    with threadpool_limits(1, user_api="blas"):
        one = quantize(rows, codebooks=2, size=16)
    with threadpool_limits(3, user_api="blas"):
        three = quantize(rows, codebooks=2, size=16)
    np.testing.assert_array_equal(one.codes, three.codes)
    np.testing.assert_array_equal(one.codebooks, three.codebooks)


def test_rows_beyond_those_trained_on_are_quantized_as_well() -> None:
    """3,072 rows to train on of 16,384, in blocks that mix both: those left out come out nearly as well."""
    rows = clustered(16_384, 16)
    q = quantize(rows, codebooks=4, size=16)
    assert q.settings["trained_on"] == 3072
    part = quantize(rows[:3072], codebooks=4, size=16)
    whole_error, part_error = np.square(q.errors(rows)).mean(), np.square(part.errors(rows[:3072])).mean()
    assert whole_error < 1.1 * part_error


def test_more_steps_give_a_smaller_error() -> None:
    rows = clustered(2000, 16)
    few, many = (np.square(quantize_additive(rows, 4, 32, 0, steps=s).errors(rows)).mean() for s in (1, 25))
    assert many < 0.95 * few


def test_the_error_is_at_most_that_of_faiss() -> None:
    rows = clustered(4000, 24)
    own, peer = (quantize(rows, codebooks=4, size=64, engine=engine) for engine in ("own", "faiss"))
    assert np.square(own.errors(rows)).sum() <= 1.01 * np.square(peer.errors(rows)).sum()
