"""The product quantizer and its k-means against plain definitions and faiss."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.compute.threads import open_pool
from isotrope.quantization import Quantized, quantize
from isotrope.quantization.kmeans import find_nearest, fit_kmeans, sum_cells
from testkit.clustered import clustered


def patchiness(q: Quantized) -> float:
    shares = q.counts / len(q)
    return float((q.counts.shape[1] * (shares * (len(q) * shares - 1)).sum(axis=1) / len(q)).mean())


def test_each_codeword_is_the_nearest_of_its_part() -> None:
    rows = clustered(2000, 12)
    q = quantize(rows, "product", codebooks=3, size=32)
    offsets = rows - q.mean
    for m in range(3):
        at = slice(4 * m, 4 * m + 4)
        distances = np.linalg.norm(offsets[:, None, at] - q.codebooks[m, :, at], axis=2)
        taken = distances[np.arange(2000), q.codes[:, m]]
        assert (taken <= distances.min(axis=1) + 1e-5).all()


def test_sums_by_cell() -> None:
    rng = np.random.default_rng(0)
    rows, codes = rng.standard_normal((50, 3), np.float32), rng.integers(0, 4, (2, 50))
    with open_pool() as pool:
        found = sum_cells(rows, codes, 4, pool).reshape(2, 4, 3)
    for m in range(2):
        for j in range(4):
            np.testing.assert_allclose(found[m, j], rows[codes[m] == j].astype(np.float64).sum(0), atol=1e-12)


def test_kmeans_finds_clear_clusters_though_it_starts_in_few_of_them() -> None:
    """All but ten rows are the same, so that most starts fall together and their cells run empty."""
    rng = np.random.default_rng(0)
    far = 100 * rng.standard_normal((5, 2))
    rows = np.vstack([np.ones((990, 2)), np.repeat(far, 2, axis=0)]).astype(np.float32)
    with open_pool() as pool:
        centroids = fit_kmeans(rows, 8, rng, pool, iterations=100)
        distance = np.linalg.norm(rows - centroids[find_nearest(rows, centroids, pool)], axis=1)
    assert distance.max() < 1.0


@pytest.mark.parametrize("width", [8, 32])
def test_error_and_evenness_are_those_of_faiss(width: int) -> None:
    rows = clustered(6000, width)
    own, peer = ([quantize(rows, "product", size=64, seed=s, engine=e) for s in range(3)] for e in ("own", "faiss"))
    error_own, error_peer = ([np.square(q.errors(rows)).mean() for q in some] for some in (own, peer))
    assert np.mean(error_own) == pytest.approx(np.mean(error_peer), rel=0.01)
    assert np.mean([patchiness(q) for q in own]) == pytest.approx(np.mean([patchiness(q) for q in peer]), rel=0.05)
