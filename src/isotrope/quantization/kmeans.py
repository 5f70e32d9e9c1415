"""k-means in large matrix products."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isotrope.quantization.quantized import Codes, Floats
from isotrope.quantization.threads import blocks

_BLOCK = 4096

#: How far apart the halves of a split cell begin, as a share of the centroid; what faiss takes.
_SPLIT = 1 / 1024


def nearest(rows: NDArray[np.float32], centroids: NDArray[np.float32], pool: Executor) -> Codes:
    """Which of the centroids, (k, d), is nearest to each of the rows, (n, d); the first among equals."""
    half_squares = np.einsum("ij,ij->i", centroids, centroids) / 2
    turned = np.ascontiguousarray(centroids.T)

    def cells(part: slice) -> Codes:
        near: Codes = (half_squares - rows[part] @ turned).argmin(axis=1)
        return near

    return np.concatenate(list(pool.map(cells, blocks(len(rows), _BLOCK))))


def sums(rows: NDArray[np.float32], codes: Codes, size: int, pool: Executor) -> Floats:
    """Sum of the rows, (n, d), in each cell of each codebook, (M · size, d), from codes (M, n), in float64."""
    m = len(codes)

    def part_sums(part: slice) -> Floats:
        places = (codes[:, part] + size * np.arange(m)[:, None]).T
        each = np.arange(0, places.size + 1, m)
        hits = scipy.sparse.csr_array((np.ones(places.size), places.ravel(), each), (len(places), m * size))
        total: Floats = hits.T @ rows[part].astype(np.float64)
        return total

    # Blocks large enough that the sums of each are small beside its rows.
    total = np.zeros((m * size, rows.shape[1]))
    for some in pool.map(part_sums, blocks(len(rows), 16 * m * size)):
        total += some
    return total


def kmeans(
    rows: NDArray[np.float32], size: int, rng: np.random.Generator, pool: Executor, iterations: int = 25
) -> NDArray[np.float32]:
    """Centroids, (size, d), of rows, (n, d), from a start at random rows; cells that run empty halve others.

    >>> from isotrope.quantization.threads import threads
    >>> with threads() as pool:
    ...     centroids = kmeans(np.float32([[0], [1], [9], [10]]), 2, np.random.default_rng(0), pool)
    >>> sorted(centroids.ravel().tolist())
    [0.5, 9.5]
    """
    centroids = rows[rng.choice(len(rows), size, replace=False)]
    cells = np.full(len(rows), -1)
    for _ in range(iterations):
        before, cells = cells, nearest(rows, centroids, pool)
        if np.array_equal(before, cells):
            break
        counts = np.bincount(cells, minlength=size)
        means = sums(rows, cells[None], size, pool) / np.maximum(counts, 1)[:, None]
        centroids = _refill(means, counts, rng).astype(np.float32)
    return centroids


def _refill(means: Floats, counts: Codes, rng: np.random.Generator) -> Floats:
    """Give each empty cell half of another, which is chosen the more often the more rows it holds."""
    counts = counts.copy()
    sign = np.where(np.arange(means.shape[1]) % 2, -_SPLIT, _SPLIT)
    for empty in np.flatnonzero(counts == 0):
        spare = np.maximum(counts - 1, 0)
        full = rng.choice(len(counts), p=spare / spare.sum())
        means[empty], means[full] = means[full] * (1 + sign), means[full] * (1 - sign)
        counts[empty] = counts[full] // 2
        counts[full] -= counts[empty]
    return means
