"""k-means in large matrix products, and the product quantizer: k-means of each part of the coordinates by itself."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool, slice_rows
from isotrope.quantization.quantized import Codes, Float, Floats, Quantized, centre_rows, widen_codewords

_BLOCK = 4096

#: Rows per cell that a product quantizer learns from, at most; what faiss takes.
_ROWS_PER_CELL = 256

#: How far apart the halves of a split cell begin, as a share of the centroid; what faiss takes.
_SPLIT = 1 / 1024

#: Squared distances below this share of the squared lengths are rounding of float32.
_ALIKE = 1e-6


def find_nearest(rows: NDArray[Float], centroids: NDArray[Float], pool: Executor) -> Codes:
    """Which of the centroids, (k, d), is nearest to each of the rows, (n, d); the first among equals."""
    half_squares = np.einsum("ij,ij->i", centroids, centroids) / 2
    turned = np.ascontiguousarray(centroids.T)

    def cells(part: slice) -> Codes:
        near: Codes = (half_squares - rows[part] @ turned).argmin(axis=1)
        return near

    return np.concatenate(list(pool.map(cells, slice_rows(len(rows), _BLOCK))))


def sum_cells(rows: NDArray[np.float32], codes: Codes, size: int, pool: Executor) -> Floats:
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
    for sums in pool.map(part_sums, slice_rows(len(rows), 16 * m * size)):
        total += sums
    return total


def choose_far_apart(
    rows: NDArray[np.float32], size: int, rng: np.random.Generator, pool: Executor
) -> NDArray[np.float32]:
    """Rows to start k-means from, (size, d), or as many as differ: each is likely far from all before it.

    Each is the best of a few drawn with chances as the squared distance to the nearest one so far. Arthur and
    Vassilvitskii 2007, k-means++, in its greedy form, which misses fewer clusters.

    >>> from isotrope.compute.threads import open_pool
    >>> with open_pool() as pool:
    ...     start = choose_far_apart(np.float32([[0], [0], [9], [9]]), 3, np.random.default_rng(0), pool)
    >>> sorted(start.ravel().tolist())
    [0.0, 9.0]
    """
    trials = 2 + int(np.log(size))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    chosen = [int(rng.integers(len(rows)))]
    closest = _compute_squared_distances(rows, squares, chosen, pool)[0]
    while len(chosen) < size and (total := closest.sum()) > 0:
        drawn = rng.choice(len(rows), trials, p=closest / total)
        distances = np.minimum(closest, _compute_squared_distances(rows, squares, drawn, pool))
        best = int(distances.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        closest = distances[best]
    return rows[chosen]


def _compute_squared_distances(
    rows: NDArray[np.float32], squares: Floats, chosen: Sequence[int] | Codes, pool: Executor
) -> Floats:
    """‖x − y‖² of chosen rows y to all rows x, (c, n); zero where rounding cannot tell them apart."""
    turned = np.ascontiguousarray(rows[chosen].T)
    products = np.concatenate(list(pool.map(lambda part: rows[part] @ turned, slice_rows(len(rows), _BLOCK))))
    sums_of_two = squares[np.asarray(chosen), None] + squares
    distances = sums_of_two - 2 * products.T
    return np.where(distances > _ALIKE * sums_of_two, distances, 0.0)


def fit_kmeans(
    rows: NDArray[np.float32],
    size: int,
    rng: np.random.Generator,
    pool: Executor,
    iterations: int = 25,
    start: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Centroids, (size, d), of rows, (n, d); cells that run empty halve others.

    start: centroids to begin with, (size, d), by default rows at random.

    >>> from isotrope.compute.threads import open_pool
    >>> with open_pool() as pool:
    ...     centroids = fit_kmeans(np.float32([[0], [1], [9], [10]]), 2, np.random.default_rng(0), pool)
    >>> sorted(centroids.ravel().tolist())
    [0.5, 9.5]
    """
    centroids = rows[rng.choice(len(rows), size, replace=False)] if start is None else start
    cells = np.full(len(rows), -1)
    for _ in range(iterations):
        before, cells = cells, find_nearest(rows, centroids, pool)
        if np.array_equal(before, cells):
            break
        counts = np.bincount(cells, minlength=size)
        means = sum_cells(rows, cells[None], size, pool) / np.maximum(counts, 1)[:, None]
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


def quantize_product(rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int) -> Quantized:
    """Quantize rows, (n, d), by k-means on each of M parts of d / M coordinates.

    References:
        Jégou, Douze and Schmid 2011, Product quantization for nearest neighbor search.

    Examples:
        >>> q = quantize_product(np.random.default_rng(0).normal(size=(300, 4)), codebooks=2, size=16, seed=0)
        >>> bool(q.codebooks[0, :, 2:].any() or q.codebooks[1, :, :2].any())
        False
    """
    values, mean, scale = centre_rows(rows)
    codes, words = [], []
    with open_pool() as pool:
        for m, part in enumerate(np.split(values, codebooks, axis=1)):
            rng = np.random.default_rng([seed, m])
            part = np.ascontiguousarray(part)
            few = len(part) <= size * _ROWS_PER_CELL
            learnt = part if few else part[rng.choice(len(part), size * _ROWS_PER_CELL, replace=False)]
            words.append(fit_kmeans(learnt, size, rng, pool))
            codes.append(find_nearest(part, words[-1], pool))
    settings = {"codebooks": codebooks, "size": size}
    return Quantized(
        np.stack(codes, axis=1), widen_codewords(np.stack(words)) * scale, mean, "product", "own", seed, settings
    )
