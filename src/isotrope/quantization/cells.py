"""Sampled rows in the cells of a trained quantizer: what the quantized measures are taken from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.quantization import Engine, Kind, quantize
from isotrope.quantization.quantized import Quantized
from isotrope.statistics import Points

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """Points, and the cells in which a quantizer that was trained on them puts each.

    Attributes:
        points: n rows.
        quantized: Their codes, (n, M), and the codebooks, (M, k, d).
        lengths: (n,), distance of each row to its quantized row.
        identity: (n,), the same number for equal rows.

    >>> from isotrope.statistics import prepare_rows
    >>> rows = np.random.default_rng(0).normal(size=(400, 8))
    >>> cells = Cells.of(Points.of(prepare_rows(rows)), "product", codebooks=4, size=16)
    >>> cells.shares.shape, bool(np.allclose(cells.shares.sum(axis=1), 1.0))
    ((4, 16), True)
    """

    points: Points
    quantized: Quantized
    lengths: Vector
    identity: NDArray[np.int64]

    @classmethod
    def of(
        cls, points: Points, kind: Kind, codebooks: int = 4, size: int = 256, seed: int = 0, *, engine: Engine = "own"
    ) -> Cells:
        """Train on all the points; Undefined with the reason where the quantizer cannot be trained."""
        quantized = quantize(points.rows, kind, codebooks=codebooks, size=size, seed=seed, engine=engine)
        return cls(points, quantized, quantized.errors(points.rows), _number_rows(points.rows))

    @property
    def n(self) -> int:
        return self.points.n

    @property
    def d(self) -> int:
        return self.points.d

    @property
    def group(self) -> NDArray[np.int64]:
        """The group that each point is left out with for intervals, (n,)."""
        return self.points.group

    @property
    def shares(self) -> Vector:
        """Share of the points in each cell of each codebook, (M, k); empty cells have none."""
        return np.asarray(self.quantized.counts / self.n)

    def only(self, at: NDArray[Any]) -> Cells:
        """The points at these places, by index or mask, in the same cells of the same codebooks."""
        codes = replace(self.quantized, codes=self.quantized.codes[at])
        return Cells(self.points.only(at), codes, self.lengths[at], self.identity[at])

    def leave_out(self, group: int) -> Cells:
        """These points without those of a group."""
        return self.only(self.group != group)

    def distinct(self) -> Iterator[NDArray[np.int64]]:
        """Where the different rows of each cell of each codebook are, (m,) each, leaving out empty cells."""
        for codes in self.quantized.codes.T:
            # Cell by cell, equal rows beside each other, of which the first is taken.
            order = np.lexsort((self.identity, codes))
            cell, row = codes[order], self.identity[order]
            first = np.append(True, (cell[1:] != cell[:-1]) | (row[1:] != row[:-1]))[: len(order)]
            order, cell = order[first], cell[first]
            yield from np.split(order, np.flatnonzero(cell[1:] != cell[:-1]) + 1)

    def describe(self) -> str:
        """The quantizer in words, for a reading's note."""
        q = self.quantized
        codebooks, size, _ = q.codebooks.shape
        cells = f"{codebooks} codebooks of {size} cells, {q.empty} of them empty"
        return f"{q.kind} quantizer, {cells}, seed {q.seed}, trained on {self.n:,} rows: compare at equal n"


def _number_rows(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    rows = np.ascontiguousarray(rows) + 0.0  # no −0, whose bytes are not those of 0
    names = rows.view(np.dtype((np.void, rows.strides[0]))).ravel()
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)
