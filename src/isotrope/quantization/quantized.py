"""Rows before and after quantization: centred and scaled, and written as sums of codewords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

Kind: TypeAlias = Literal["additive", "product"]
Engine: TypeAlias = Literal["own", "faiss"]
Codes: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Float = TypeVar("Float", np.float32, np.float64)

#: Rows whose reconstruction is held at once.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Quantized:
    """Each row as a mean plus one codeword of each of M codebooks: x' = mean + Σ_m codebooks[m, codes[:, m]].

    codes: (n, M), which of the k cells of each codebook a row lies in.
    codebooks: (M, k, d); those of a product quantizer are zero outside their own d / M coordinates, so that both
    kinds reconstruct alike. mean: (d,), taken off before quantizing, zero where the engine did not.
    kind, engine: the quantizer. seed: where its chance came from. settings: all else that it was told.

    >>> words = np.array([[[1.0], [2.0]], [[10.0], [20.0]]])
    >>> q = Quantized(np.array([[0, 1]]), words, np.zeros(1), "additive", "own", seed=0)
    >>> q.reconstruct().tolist(), q.counts.tolist(), q.errors(np.array([[24.0]])).tolist()
    ([[21.0]], [[1, 0], [0, 1]], [3.0])
    """

    codes: Codes
    codebooks: Floats
    mean: Floats
    kind: Kind
    engine: Engine
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def counts(self) -> Codes:
        """How many rows lie in each cell, (M, k)."""
        k = self.codebooks.shape[1]
        return np.stack([np.bincount(column, minlength=k) for column in self.codes.T])

    @property
    def empty(self) -> int:
        """How many of the M · k cells hold no row."""
        return int((self.counts == 0).sum())

    def reconstruct(self) -> Floats:
        """The rows as the codebooks give them back, (n, d)."""
        return self.mean + sum_codewords(self.codebooks, self.codes.T)

    def errors(self, rows: NDArray[Any]) -> Floats:
        """‖x − x'‖ of each of the rows that were quantized, (n,), in float64 about the mean."""
        expected = (len(self), self.codebooks.shape[2])
        if rows.shape != expected:
            raise InputError(f"expected the {expected} rows that were quantized, got an array of shape {rows.shape}.")
        lengths = np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            part = slice(start, start + _BLOCK)
            sums = sum_codewords(self.codebooks, self.codes[part].T)
            lengths[part] = np.linalg.norm((rows[part] - self.mean) - sums, axis=1)
        return lengths


def sum_codewords(codebooks: NDArray[Float], codes: Codes) -> NDArray[Float]:
    """Σ_m codebooks[m, codes[m]], (n, d), for codebooks (M, k, d) and codes (M, n)."""
    total: NDArray[Float] = codebooks[0, codes[0]]
    for m in range(1, len(codebooks)):
        total += codebooks[m, codes[m]]
    return total


def widen_codewords(parts: NDArray[np.floating[Any]]) -> Floats:
    """Codewords of M parts of the coordinates, (M, k, d / M), at full width, (M, k, d), zero outside their part.

    >>> widen_codewords(np.array([[[1.0]], [[2.0]]])).tolist()
    [[[1.0, 0.0]], [[0.0, 2.0]]]
    """
    m, k, width = parts.shape
    words = np.zeros((m, k, m, width))
    words[np.arange(m), :, np.arange(m)] = parts
    return words.reshape(m, k, m * width)


class CentredRows(NamedTuple):
    """Rows = mean + scale · values.

    values: (n, d) in float32, none beyond ±1, so that no product overflows. mean: (d,). scale: a power of two, so
    that nothing is rounded by it.
    """

    values: NDArray[np.float32]
    mean: Floats
    scale: float


def centre_rows(rows: NDArray[np.floating[Any]]) -> CentredRows:
    """Centre and scale rows, (n, d): a common mean far beyond the spread would cost float32 products their digits.

    >>> values, mean, scale = centre_rows(np.array([[1e6 + 3.0], [1e6 - 3.0]]))
    >>> values.tolist(), mean.tolist(), scale
    ([[0.75], [-0.75]], [1000000.0], 4.0)
    """
    # The mean in the rows' own type: rows that are close to it lose nothing when it is taken off.
    mean = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    offsets = rows - mean
    scale = find_power_of_two(offsets)
    return CentredRows(
        (offsets / rows.dtype.type(scale)).astype(np.float32, copy=False), mean.astype(np.float64), scale
    )


def find_power_of_two(values: NDArray[np.floating[Any]]) -> float:
    """The smallest power of two that none of the values is beyond; 1 where all are zero."""
    largest = max(float(values.max()), -float(values.min()))
    return float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0
