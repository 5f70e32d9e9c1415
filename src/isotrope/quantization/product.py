"""The product quantizer: k-means of each part of the coordinates by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool
from isotrope.quantization.kmeans import find_nearest, fit_kmeans
from isotrope.quantization.quantized import Quantized, centre_rows

#: Rows per cell that k-means learns from, at most; what faiss takes.
_ROWS_PER_CELL = 256


def quantize_product(rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int) -> Quantized:
    """Quantize rows, (n, d), by k-means on each of M parts of d / M coordinates.

    Jégou, Douze and Schmid 2011, Product quantization for nearest neighbor search.

    >>> q = quantize_product(np.random.default_rng(0).normal(size=(300, 4)), codebooks=2, size=16, seed=0)
    >>> bool(q.codebooks[0, :, 2:].any() or q.codebooks[1, :, :2].any())
    False
    """
    values, mean, scale = centre_rows(rows)
    n, d = values.shape
    width = d // codebooks
    codes = np.empty((codebooks, n), dtype=np.int64)
    words = np.zeros((codebooks, size, d))
    with open_pool() as pool:
        for m in range(codebooks):
            rng = np.random.default_rng([seed, m])
            at = slice(m * width, (m + 1) * width)
            part = np.ascontiguousarray(values[:, at])
            learnt = part if n <= size * _ROWS_PER_CELL else part[rng.choice(n, size * _ROWS_PER_CELL, replace=False)]
            centroids = fit_kmeans(learnt, size, rng, pool)
            codes[m] = find_nearest(part, centroids, pool)
            words[m, :, at] = centroids
    settings = {"codebooks": codebooks, "size": size}
    return Quantized(np.ascontiguousarray(codes.T), words * scale, mean, "product", "own", seed, settings)
