"""Recall and exact search against plain numpy, sign codes against plain Hamming distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

faiss = pytest.importorskip("faiss")

from isotrope.search import faiss_index  # noqa: E402
from isotrope.search.index_recall import compute_recall  # noqa: E402
from isotrope.search.index_settings import EXACT, FAMILIES, find_divisor  # noqa: E402
from isotrope.search.index_trials import try_family  # noqa: E402
from isotrope.search.sign_codes import build_sign_codes, encode_signs  # noqa: E402

RNG = np.random.default_rng(3)
N, Q, D, K = 700, 40, 24, 10


def make_unit_rows(n: int, shift: float = 0.5) -> np.ndarray:
    rows = RNG.normal(size=(n, D)) + shift
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


ROWS, QUERIES = make_unit_rows(N), make_unit_rows(Q)


def find_nearest(rows: np.ndarray, queries: np.ndarray, k: int = K) -> np.ndarray:
    """The k nearest rows by plain numpy in float64."""
    return np.argsort(-(queries.astype(float) @ rows.T.astype(float)), axis=1, kind="stable")[:, :k]


EXACT_FOUND = find_nearest(ROWS, QUERIES)


def share_in_common(found: np.ndarray, exact: np.ndarray = EXACT_FOUND) -> np.ndarray:
    return np.array(
        [len(set(a) & set(b)) / exact.shape[1] for a, b in zip(found.tolist(), exact.tolist(), strict=True)]
    )


def test_exact_search_finds_what_numpy_finds_and_what_faiss_finds() -> None:
    (trial,) = try_family(FAMILIES[0], ROWS, QUERIES, K, K, 0)
    assert (FAMILIES[0].name, trial.setting, trial.bytes) == (EXACT, "float32", 4 * D)
    assert_array_equal(trial.found, EXACT_FOUND)
    index = faiss.IndexFlatIP(D)
    index.add(ROWS)
    assert_array_equal(trial.found, index.search(QUERIES, K)[1])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_recall_of_every_family_is_the_share_in_common_with_numpy(family: Any) -> None:
    trials = list(try_family(family, ROWS, QUERIES, K, K, 0))
    assert len({trial.setting for trial in trials}) == len(trials)
    for trial in trials:
        assert trial.reason is None
        assert trial.seconds > 0
        recall = compute_recall(ROWS, QUERIES, EXACT_FOUND, trial.found)
        assert_allclose(recall, share_in_common(trial.found))
        assert 0.02 < recall.mean() <= 1


def test_equal_rows_count_whichever_is_found() -> None:
    """Each row is there twice: an index that returns the other copies has found everything."""
    rows = np.concatenate([ROWS[:50], ROWS[:50]])
    exact = find_nearest(rows, QUERIES, 9)
    twins = (exact + 50) % 100
    assert share_in_common(twins, exact).mean() < 0.95
    assert compute_recall(rows, QUERIES, exact, twins).tolist() == [1.0] * Q
    missing = exact.copy()
    missing[:, 4:] = -1
    assert_allclose(compute_recall(rows, QUERIES, exact, missing), 4 / 9)


def test_sign_codes_are_plain_hamming_distances() -> None:
    index = build_sign_codes(ROWS, "", 0)
    assert index.bytes_per_vector == D / 8
    distances = ((QUERIES[:, None, :] > 0) != (ROWS[None] > 0)).sum(axis=2)
    found = index.search(QUERIES, K, {})
    expected = np.sort(distances, axis=1)[:, :K]
    assert_array_equal(np.sort(np.take_along_axis(distances, found, axis=1), axis=1), expected)
    # Rescored from all rows, it is exact search.
    assert_array_equal(index.search(QUERIES, K, {"rescored": N}), EXACT_FOUND)
    four = index.search(QUERIES, K, {"rescored": 4})
    _, candidates = index.index.search(encode_signs(QUERIES), 4 * K)
    for row, query, among in zip(four, QUERIES, candidates, strict=True):
        best = sorted(among.tolist(), key=lambda number: -float(ROWS[number].astype(float) @ query.astype(float)))
        assert row.tolist() == best[:K]


def test_odd_widths_have_sign_codes_too() -> None:
    rows = np.ascontiguousarray(ROWS[:, :13])
    index = build_sign_codes(rows, "", 0)
    assert index.bytes_per_vector == 2
    distances = ((rows[:5, None, :] > 0) != (rows[None] > 0)).sum(axis=2)
    found = index.search(rows[:5], 3, {})
    assert_array_equal(np.take_along_axis(distances, found, axis=1), np.sort(distances, axis=1)[:, :3])


def test_int8_rounds_within_its_range() -> None:
    """With the range of each dimension the codes are 256 steps between its least and greatest value."""
    index = faiss_index.build_scalar(ROWS, "QT_8bit", 0).index
    low, high = ROWS.min(axis=0), ROWS.max(axis=0)
    stored = index.reconstruct_n(0, N)
    assert np.abs(stored - ROWS).max() <= 1.01 * ((high - low) / 255).max() / 2 + 1e-6
    wide = faiss_index.build_scalar(ROWS, "QT_8bit ±1", 0).index.reconstruct_n(0, N)
    steps = (wide + 1) / 2 * 255
    assert_allclose(steps - np.floor(steps), 0.5, atol=1e-3)  # faiss stores the middles of 256 steps of −1 to 1
    # The mean error of rounding is a quarter of a step.
    assert_allclose(np.abs(stored - ROWS).mean(), ((high - low) / 255).mean() / 4, rtol=0.05)
    assert_allclose(np.abs(wide - ROWS).mean(), 2 / 255 / 4, rtol=0.05)


def test_truncation_is_cosine_of_the_first_dimensions_and_pca_distance_of_components() -> None:
    first = ROWS[:, :8] / np.linalg.norm(ROWS[:, :8], axis=1, keepdims=True)
    asked = QUERIES[:, :8] / np.linalg.norm(QUERIES[:, :8], axis=1, keepdims=True)
    assert_array_equal(faiss_index.build_truncated(ROWS, 8, 0).search(QUERIES, K, {}), find_nearest(first, asked))
    centred = ROWS.astype(float) - ROWS.astype(float).mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    project = axes[:6].T
    rows, queries = centred @ project, (QUERIES - ROWS.astype(float).mean(axis=0)) @ project
    distances = ((queries[:, None, :] - rows[None]) ** 2).sum(axis=2)
    expected = np.argsort(distances, axis=1)[:, :K]
    found = faiss_index.build_pca(ROWS, 6, 0).search(QUERIES, K, {})
    assert share_in_common(found, expected).mean() > 0.995


def test_bytes_are_those_of_the_codes() -> None:
    bytes_of = {
        trial.setting: (trial.bytes, trial.rescoring_bytes)
        for family in FAMILIES
        for trial in try_family(family, ROWS, QUERIES, K, K, 0)
    }
    assert bytes_of["float16"] == (2 * D, 0)
    assert bytes_of["int8, one range"] == (D, 0)
    assert bytes_of["binary"] == (D / 8, 0)
    assert bytes_of["binary, 4k rescored"] == (D / 8, 4 * D)
    assert bytes_of["PQ, 3 bytes"] == (3, 0)
    assert bytes_of["PCA to 12"] == (4 * 12, 0)
    links = bytes_of["HNSW, M 16, efSearch 64"][0] - 4 * D
    assert 2 * 16 * 4 <= links < 2 * 16 * 4 * 1.1  # 2 M links of the lowest level, and few above
    assert bytes_of["IVF, 26 lists, nprobe 4"] == (4 * D + 8, 0)


def test_a_setting_that_cannot_be_trained_says_why() -> None:
    family = next(family for family in FAMILIES if family.name == "pq")
    for trial in try_family(family, ROWS[:200], QUERIES, K, K, 0):
        assert trial.reason == "it needs at least 256 vectors to train on, got 200"


def test_divisors_divide() -> None:
    for d in (1, 7, 50, 384, 768, 1023):
        for share in (1, 8, 16):
            if d >= share:
                assert d % find_divisor(d, share) == 0
                assert find_divisor(d, share) <= d / share


def test_faiss_threads_are_restored(tmp_path: Path) -> None:
    before = faiss.omp_get_max_threads()
    with faiss_index.use_one_thread():
        assert faiss.omp_get_max_threads() == 1
    assert faiss.omp_get_max_threads() == before
