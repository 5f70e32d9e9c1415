"""Which codewords make up a row: iterated conditional modes from many starts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.quantization.quantized import Codes

#: Rows searched at once: on a CPU what stays near its cache, on a GPU what fills it.
BLOCK, GPU_BLOCK = 1024, 16384

#: Sweeps over the codebooks after each start: a second one finds most of what is left, a third hardly any.
_SWEEPS = 2


class Search:
    """Codes of small ‖x − Σ_m C_m[code_m]‖² for given codebooks, (M, k, d), in float32.

    The square is ‖x‖² plus ‖c‖² − 2 x·c for each codeword taken and 2 c·c' for each pair of them. The former are one
    matrix product for a block of rows, the latter a table; a sweep then finds the best codeword of one codebook after
    the other, given the rest, by looking up and adding. Martinez, Clement, Hoos and Little 2016, Revisiting additive
    quantization (LSQ).

    device: a torch device, or None for numpy.
    """

    def __init__(self, codebooks: NDArray[np.float32], device: str | None = None) -> None:
        self.xp: Any = np
        if device is not None:
            import torch

            self.xp = torch
        self.device = device
        self.m, self.k, d = codebooks.shape
        words = codebooks.reshape(self.m * self.k, d)
        products = 2 * (words @ words.T).reshape(self.m, self.k, self.m, self.k)
        self.turned = self._to_array(-2 * words.T)
        self.squares = self._to_array(np.einsum("ij,ij->i", words, words))
        self.pairs = self._to_array(products.transpose(0, 2, 1, 3))  # (M, M, k, k): two codebooks, a code in each

    def refine(self, rows: NDArray[np.float32], codes: Codes, rounds: int, rng: np.random.Generator) -> Codes:
        """Codes, (M, n), at least as good for rows, (n, d), as those given.

        Sweep from the codes given, then `rounds` times from the best so far with most codes changed at random.
        """
        single = self._to_array(rows) @ self.turned
        single += self.squares
        best = self._to_array(codes.copy())
        self._sweep(best, single)
        least = self._compute_cost(best, single)
        for _ in range(rounds):
            trial = self._perturb(best, rng)
            self._sweep(trial, single)
            cost = self._compute_cost(trial, single)
            best = self.xp.where(cost < least, trial, best)
            least = self.xp.minimum(cost, least)
        return np.asarray(best if self.device is None else best.cpu().numpy())

    def _perturb(self, codes: Any, rng: np.random.Generator) -> Any:
        """Codes after M random places of each row, some perhaps more than once, have got random values."""
        change = rng.random(codes.shape, dtype=np.float32) > (1 - 1 / self.m) ** self.m
        return self.xp.where(self._to_array(change), self._to_array(rng.integers(0, self.k, codes.shape)), codes)

    def _sweep(self, codes: Any, single: Any) -> None:
        """Put the best codeword of each codebook, given those of the others, into codes, one codebook at a time."""
        # Space for all look-ups: new memory for each would take longer than the look-up.
        total, table = self.xp.empty_like(single[:, : self.k]), self.xp.empty_like(single[:, : self.k])
        for m in [*range(self.m)] * _SWEEPS:
            cost = single[:, m * self.k : (m + 1) * self.k]
            for other in range(self.m):
                if other != m:
                    self._look_up(self.pairs[other, m], codes[other], table)
                    cost = self.xp.add(cost, table, out=total)
            codes[m] = cost.argmin(1)

    def _look_up(self, table: Any, codes: Any, out: Any) -> None:
        if self.device is None:
            np.take(table, codes, axis=0, out=out, mode="clip")  # with another mode numpy makes a copy of `out`
        else:
            self.xp.index_select(table, 0, codes, out=out)

    def _compute_cost(self, codes: Any, single: Any) -> Any:
        """‖x − x'‖² − ‖x‖² of each row, (n,)."""
        places = np.arange(self.m)[:, None] * self.k + np.arange(len(single)) * (self.m * self.k)
        cost = self.xp.take(single, codes + self._to_array(places)).sum(0)
        one, other = np.triu_indices(self.m, 1)
        table = self._to_array((one * self.m + other)[:, None] * self.k)
        return cost + self.xp.take(self.pairs, (table + codes[one]) * self.k + codes[other]).sum(0)

    def _to_array(self, values: NDArray[Any]) -> Any:
        values = np.ascontiguousarray(values)
        return values if self.device is None else self.xp.as_tensor(values, device=self.device)


def find_gpu() -> str | None:
    """The torch device of a GPU, None where there is none or no torch."""
    if find_spec("torch") is None:
        return None
    import torch

    return "cuda" if torch.cuda.is_available() else None
