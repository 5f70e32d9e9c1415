"""The additive quantizer: each row as a sum of full-width codewords, after LSQ++."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool, slice_rows
from isotrope.quantization.centring import centred
from isotrope.quantization.codebooks import least_squares
from isotrope.quantization.kmeans import nearest
from isotrope.quantization.quantized import Codes, Floats, Quantized, sums_of_codewords
from isotrope.quantization.search import BLOCK, GPU_BLOCK, Search, gpu

#: Rows per cell to train on, at most, and of these to take as starts for all others.
_ROWS_PER_CELL, _STARTS_PER_CELL = 192, 8

#: Steps of training: LSQ++'s 25 where they are cheap, for many rows fewer, down to ten.
_MOST_STEPS, _LEAST_STEPS = 25, 10

#: New starts in each search for codes.
_ROUNDS = 4

#: Passes over all rows after training, at most, and the share by which the error must fall to go on.
_PASSES, _GAIN = 4, 0.01

Rows = NDArray[np.float32]


def additive(
    rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int, steps: int | None = None
) -> Quantized:
    """Quantize rows, (n, d), as sums of one codeword of width d from each of M codebooks.

    Train on some of the rows as LSQ++ does: from random codes solve for the codebooks, blur them with noise that
    fades away, search for better codes, and again. Then start each other row from the codes of the nearest of a few
    rows, and go on with all rows and no noise until the error stops falling. steps: of training, by default from n.

    Martinez, Zakhmi, Hoos and Little 2018, LSQ++: Lower running time and higher recall in multi-codebook quantization.

    >>> x = np.random.default_rng(0).normal(size=(400, 8))
    >>> q = additive(x, codebooks=2, size=16, seed=0)
    >>> float((q.errors(x) ** 2).sum() / (x**2).sum()) < 0.5
    True
    """
    values, mean, scale = centred(rows)
    few = min(len(values), size * _ROWS_PER_CELL)
    if steps is None:
        steps = int(np.clip(_LEAST_STEPS * size * _ROWS_PER_CELL // few, _LEAST_STEPS, _MOST_STEPS))
    with open_pool() as pool:
        work = _Work(size, seed, pool, gpu())
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
        sums = sums_of_codewords(self.solve(rows[:few], codes).astype(np.float32), codes[:, starts])
        return np.hstack([codes, codes[:, starts][:, nearest(rows[few:], sums, self.pool)]])

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
        return least_squares(rows, codes, self.size, self.pool)

    def search(self, rows: Rows, words: Floats, codes: Codes) -> Codes:
        """Better codes for these codebooks; each block of rows has its own chance, so threads do not matter."""
        search = Search(words.astype(np.float32), self.device)
        self.searches += 1

        def refined(part: slice) -> Codes:
            rng = np.random.default_rng([self.seed, self.searches, part.start])
            return search.refine(rows[part], codes[:, part], _ROUNDS, rng)

        if self.device is None:
            return np.hstack(list(self.pool.map(refined, slice_rows(len(rows), BLOCK))))
        return np.hstack([refined(part) for part in slice_rows(len(rows), GPU_BLOCK)])

    def error(self, rows: Rows, words: Floats, codes: Codes) -> float:
        """Σ‖x − x'‖²."""
        narrow = words.astype(np.float32)

        def squares(part: slice) -> float:
            return float(np.square(rows[part] - sums_of_codewords(narrow, codes[:, part])).sum(dtype=np.float64))

        return sum(self.pool.map(squares, slice_rows(len(rows), BLOCK)))
