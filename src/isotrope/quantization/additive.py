"""The additive quantizer: each row as a sum of full-width codewords, after LSQ++."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool, slice_rows
from isotrope.quantization.kmeans import find_nearest, sum_cells
from isotrope.quantization.quantized import Codes, Floats, Quantized, centre_rows, sum_codewords
from isotrope.quantization.search import BLOCK, GPU_BLOCK, Search, find_gpu

#: Rows per cell to train on, at most, and of these to take as starts for all others.
_ROWS_PER_CELL, _STARTS_PER_CELL = 192, 8

#: Steps of training: LSQ++'s 25 where they are cheap, for many rows fewer, down to ten.
_MOST_STEPS, _LEAST_STEPS = 25, 10

#: New starts in each search for codes.
_ROUNDS = 4

#: Passes over all rows after training, at most, and the share by which the error must fall to go on.
_PASSES, _GAIN = 4, 0.01

#: Added to each count: codebooks may trade a common vector, so that without it there is no single solution.
_RIDGE = 1e-6

Rows = NDArray[np.float32]


def quantize_additive(
    rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int, steps: int | None = None
) -> Quantized:
    """Quantize rows, (n, d), as sums of one codeword of width d from each of M codebooks.

    Train on some of the rows as LSQ++ does: from random codes solve for the codebooks, blur them with noise that
    fades away, search for better codes, and again. Then start each other row from the codes of the nearest of a few
    rows, and go on with all rows and no noise until the error stops falling. steps: of training, by default from n.

    Martinez, Zakhmi, Hoos and Little 2018, LSQ++: Lower running time and higher recall in multi-codebook quantization.

    >>> x = np.random.default_rng(0).normal(size=(400, 8))
    >>> q = quantize_additive(x, codebooks=2, size=16, seed=0)
    >>> float((q.errors(x) ** 2).sum() / (x**2).sum()) < 0.5
    True
    """
    values, mean, scale = centre_rows(rows)
    few = min(len(values), size * _ROWS_PER_CELL)
    if steps is None:
        steps = int(np.clip(_LEAST_STEPS * size * _ROWS_PER_CELL // few, _LEAST_STEPS, _MOST_STEPS))
    with open_pool() as pool:
        work = _Work(size, seed, pool, find_gpu())
        order = work.rng.permutation(len(values))  # so that the rows to train on are the first ones
        values = values[order]
        codes = work.train(values[:few], codebooks, steps)
        codes = work.spread(values, codes)
        codes, words = work.finish(values, codes)
    own_order = np.empty_like(codes.T)
    own_order[order] = codes.T
    settings = {"codebooks": codebooks, "size": size, "steps": steps, "trained_on": few}
    return Quantized(own_order, words * scale, mean, "additive", "own", seed, settings)


class _Work:
    """The parts of one run: rows are (n, d), codes (M, n), codebooks (M, k, d)."""

    def __init__(self, size: int, seed: int, pool: Executor, device: str | None) -> None:
        self.size, self.seed, self.pool, self.device = size, seed, pool, device
        self.rng = np.random.default_rng(seed)
        self.searches = 0

    def train(self, rows: Rows, codebooks: int, steps: int) -> Codes:
        """Codes of rows, from random ones, by solving and searching in turns while the noise fades."""
        codes = self.rng.integers(0, self.size, (codebooks, len(rows)))
        spread = rows.std(axis=0)
        for step in range(1, steps + 1):
            words = self.solve(rows, codes)
            noise = self.rng.standard_normal(words.shape, dtype=np.float32) * spread
            codes = self.search(rows, words + noise * (np.sqrt(1 - step / steps) / codebooks), codes)
        return codes

    def spread(self, rows: Rows, codes: Codes) -> Codes:
        """Codes of all rows, where so far there are those of the first: others start from the nearest of a few.

        From random codes the search would leave many rows of real models far from their best codes for good.
        """
        few = codes.shape[1]
        if few == len(rows):
            return codes
        starts = self.rng.choice(few, min(few, self.size * _STARTS_PER_CELL), replace=False)
        sums = sum_codewords(self.solve(rows[:few], codes).astype(np.float32), codes[:, starts])
        return np.hstack([codes, codes[:, starts][:, find_nearest(rows[few:], sums, self.pool)]])

    def finish(self, rows: Rows, codes: Codes) -> tuple[Codes, Floats]:
        """Codes and codebooks of all rows, by searching and solving in turns until the error hardly falls."""
        few = min(len(rows), self.size * _ROWS_PER_CELL)
        words, error = self.solve(rows[:few], codes[:, :few]), np.inf
        for _ in range(_PASSES):
            codes = self.search(rows, words, codes)
            words = self.solve(rows, codes)
            before, error = error, self.error(rows, words, codes)
            if error >= (1 - _GAIN) * before:
                break
        return codes, words

    def solve(self, rows: Rows, codes: Codes) -> Floats:
        return solve_codebooks(rows, codes, self.size, self.pool)

    def search(self, rows: Rows, words: Floats, codes: Codes) -> Codes:
        """Better codes for these codebooks; each block of rows has its own chance, so threads do not matter."""
        search = Search(words.astype(np.float32), self.device)
        self.searches += 1

        def refine(part: slice) -> Codes:
            rng = np.random.default_rng([self.seed, self.searches, part.start])
            return search.refine(rows[part], codes[:, part], _ROUNDS, rng)

        if self.device is None:
            return np.hstack(list(self.pool.map(refine, slice_rows(len(rows), BLOCK))))
        return np.hstack([refine(part) for part in slice_rows(len(rows), GPU_BLOCK)])

    def error(self, rows: Rows, words: Floats, codes: Codes) -> float:
        """Σ‖x − x'‖²."""
        narrow = words.astype(np.float32)

        def squares(part: slice) -> float:
            return float(np.square(rows[part] - sum_codewords(narrow, codes[:, part])).sum(dtype=np.float64))

        return sum(self.pool.map(squares, slice_rows(len(rows), BLOCK)))


def solve_codebooks(rows: NDArray[np.float32], codes: Codes, size: int, pool: Executor) -> Floats:
    """Codebooks, (M, k, d), of least Σ‖x − Σ_m C_m[code_m]‖² for rows, (n, d), with codes, (M, n).

    With B the (n, M · k) matrix of zeros and ones that says which codewords make up a row, BᵀB C = BᵀX: B is never
    made, BᵀB is a table of counts. Martinez, Zakhmi, Hoos and Little 2018, section 3.

    >>> from isotrope.compute.threads import open_pool
    >>> with open_pool() as pool:
    ...     words = solve_codebooks(np.float32([[0], [1], [10], [11]]), np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), 2, pool)
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
    right = sum_cells(rows, codes, size, pool)
    # In float64: what rounding leaves along the directions that only the ridge holds is divided by the ridge.
    solution: Floats = scipy.linalg.solve(normal, right, assume_a="pos", overwrite_a=True, overwrite_b=True)
    return solution.reshape(m, size, -1)
