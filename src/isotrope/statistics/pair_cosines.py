"""Cosines of random pairs of rows, and how uncertain a share of such pairs is, because pairs share rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

Vector = NDArray[np.float64]
Numbers = NDArray[np.int32]

#: About so many pairs are looked at where rows make more.
PAIRS = 10_000_000


@dataclass(frozen=True, eq=False)
class PairCosines:
    """Cosines of pairs of rows.

    Attributes:
        cosines: Of each pair, (p,).
        first: Number of the first row of each pair, (p,).
        second: Number of its second row, (p,). The documents of queries are counted on behind the queries.
        rows: Number of rows in all.
    """

    cosines: Vector
    first: Numbers
    second: Numbers
    rows: int

    @classmethod
    def of(cls, unit: NDArray[Any], pairs: int = PAIRS, seed: int = 0) -> PairCosines:
        """Cosines of pairs of different rows of length 1, (n, d): all, or those within random blocks of rows.

        The same pairs are chosen for any rows of the same number.

        >>> found = PairCosines.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
        >>> np.sort(found.cosines).round(2).tolist()
        [0.0, 0.6, 0.8]
        """
        if len(unit) < 2:
            raise InputError(f"got {len(unit)} usable rows, expected at least two: a pair needs two rows.")
        return cls._join(_compare_blocks(unit, pairs, seed), len(unit))

    @classmethod
    def between(cls, queries: NDArray[Any], documents: NDArray[Any], pairs: int = PAIRS, seed: int = 0) -> PairCosines:
        """Cosines of queries (q, d) with documents (n, d), all of length 1: of all pairs, or of random blocks of both.

        >>> PairCosines.between(np.eye(2)[:1], np.eye(2)).cosines.tolist()
        [1.0, 0.0]
        """
        if queries.shape[1] != documents.shape[1]:
            raise InputError(
                f"the queries have {queries.shape[1]} dimensions and the documents {documents.shape[1]}; "
                "give both from one model."
            )
        if not (len(queries) and len(documents)):
            raise InputError("got no usable query or no usable document; give at least one of each.")
        rows = len(queries) + len(documents)
        return cls._join(_compare_sides(queries, documents, pairs, seed), rows)

    @classmethod
    def _join(cls, parts: Iterator[tuple[Vector, Numbers, Numbers]], rows: int) -> PairCosines:
        cosines, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(np.clip(cosines, -1.0, 1.0, out=cosines), first, second, rows)

    def __len__(self) -> int:
        return len(self.cosines)

    def only(self, at: NDArray[Any]) -> PairCosines:
        """The pairs at these places, by index or mask."""
        return PairCosines(self.cosines[at], self.first[at], self.second[at], self.rows)

    @cached_property
    def degrees(self) -> Vector:
        """How many pairs each row is in, (rows,)."""
        return self.count_by_row(slice(None))

    def count_by_row(self, at: Any) -> Vector:
        """How many of the pairs at these places each row is in, (rows,)."""
        counts = [np.bincount(side[at], minlength=self.rows) for side in (self.first, self.second)]
        return np.asarray(counts[0] + counts[1], dtype=np.float64)

    def compute_effective(self, cosine: float) -> float:
        """The number of independent pairs that would tell the share of pairs from a cosine on as exactly as these do.

        The variance of a share adds up what pairs with a common row have in common (Aronow, Samii & Assenova 2015,
        doi:10.1093/pan/mpv018). It is at least that of independent pairs.
        """
        hits = np.flatnonzero(self.cosines >= cosine)
        share, n = len(hits) / len(self), len(self)
        binomial = n * share * (1.0 - share)
        if binomial <= 0.0:
            return float(n)
        away = self.count_by_row(hits) - share * self.degrees
        return n * binomial / max(float(away @ away) - binomial, binomial)


def compute_shared_variance(values: Vector, first: Numbers, second: Numbers, rows: int) -> float:
    """Variance of a sum over pairs, (p,), of values whose expectation is 0, where pairs may have a row in common.

    >>> compute_shared_variance(np.array([1.0, 1.0]), np.array([0, 0]), np.array([1, 2]), 3)
    4.0
    """
    sums = np.bincount(first, values, rows) + np.bincount(second, values, rows)
    squares = float(values @ values)
    return max(float(sums @ sums) - squares, squares)


def _compare_blocks(unit: NDArray[Any], pairs: int, seed: int) -> Iterator[tuple[Vector, Numbers, Numbers]]:
    n = len(unit)
    size = n if n * (n - 1) // 2 <= pairs else max(2, int(1 + 2 * pairs / n))
    order = np.random.default_rng(seed).permutation(n).astype(np.int32)
    for block in np.array_split(order, max(1, round(n / size))):
        low, high = (side.astype(np.int32) for side in np.triu_indices(len(block), 1))
        rows = unit[block].astype(np.float64, copy=False)
        yield (rows @ rows.T)[low, high], block[low], block[high]


def _compare_sides(
    queries: NDArray[Any], documents: NDArray[Any], pairs: int, seed: int
) -> Iterator[tuple[Vector, Numbers, Numbers]]:
    sizes = len(queries), len(documents)
    count = min(max(1, round(sizes[0] * sizes[1] / pairs)), *sizes)
    rng = np.random.default_rng(seed)
    parts = (np.array_split(rng.permutation(size).astype(np.int32), count) for size in sizes)
    for asked, found in zip(*parts, strict=True):
        cosines = queries[asked].astype(np.float64, copy=False) @ documents[found].astype(np.float64, copy=False).T
        first, second = np.repeat(asked, len(found)), np.tile(found + np.int32(sizes[0]), len(asked))
        yield cosines.ravel(), first, second
