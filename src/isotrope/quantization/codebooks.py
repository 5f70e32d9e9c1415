"""The best codebooks for given codes: one least-squares problem."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from isotrope.quantization.kmeans import sums
from isotrope.quantization.quantized import Codes, Floats

#: Added to each count: codebooks may trade a common vector, so that without it there is no single solution.
_RIDGE = 1e-6


def least_squares(rows: NDArray[np.float32], codes: Codes, size: int, pool: Executor) -> Floats:
    """Codebooks, (M, k, d), of least Σ‖x − Σ_m C_m[code_m]‖² for rows, (n, d), with codes, (M, n).

    With B the (n, M · k) matrix of zeros and ones that says which codewords make up a row, BᵀB C = BᵀX: B is never
    made, BᵀB is a table of counts. Martinez, Zakhmi, Hoos and Little 2018, section 3.

    >>> from isotrope.compute.threads import open_pool
    >>> with open_pool() as pool:
    ...     words = least_squares(np.float32([[0], [1], [10], [11]]), np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), 2, pool)
    >>> (words[0, [0, 0, 1, 1]] + words[1, [0, 1, 0, 1]]).round(4).ravel().tolist()
    [0.0, 1.0, 10.0, 11.0]
    """
    m = len(codes)
    together = np.empty((m, size, m, size))
    for p in range(m):
        for q in range(p, m):
            counts = np.bincount(codes[p] * size + codes[q], minlength=size * size).reshape(size, size)
            together[p, :, q], together[q, :, p] = counts, counts.T
    normal = together.reshape(m * size, m * size)
    normal[np.diag_indices(m * size)] += _RIDGE
    right = sums(rows, codes, size, pool)
    # In float64: what rounding leaves along the directions that only the ridge holds is divided by the ridge.
    solution: Floats = scipy.linalg.solve(normal, right, assume_a="pos", overwrite_a=True, overwrite_b=True)
    return solution.reshape(m, size, -1)
