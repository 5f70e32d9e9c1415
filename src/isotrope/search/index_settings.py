"""Settings of an index that are compared: one table of families, each with its grid for so many rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from isotrope.search import faiss_index
from isotrope.search.faiss_index import UnitRows, VectorIndex
from isotrope.search.sign_codes import build_sign_codes

#: Values of the parameter that an index is built with, for n rows of d columns.
Grid: TypeAlias = Callable[[int, int], Sequence[Any]]

#: The family of exact search, which all others are compared with.
EXACT = "float32"


@dataclass(frozen=True)
class IndexFamily:
    """A way to store vectors, with a grid of settings.

    Attributes:
        name: Of the family.
        title: The words for a value of the grid.
        grid: The values.
        build: Builds the index from unit rows, a value and a seed.
        searches: The words and the parameters of each search in the same index.
        least_rows: How many rows it needs.
        uses_rows: Whether a search with parameters reads the rows themselves, which are kept elsewhere.
        bounded: Whether parameters of a search must be below the value of the grid.
    """

    name: str
    title: str
    grid: Grid
    build: Callable[[UnitRows, Any, int], VectorIndex]
    searches: Mapping[str, Mapping[str, int]]
    least_rows: int = 1
    uses_rows: bool = False
    bounded: bool = False

    def list_searches(self, value: Any) -> dict[str, Mapping[str, int]]:
        """The searches in an index that was built with a value of the grid, by the words for the whole setting."""
        title = self.title.format(_RANGES.get(value, value))
        return {
            title + words: parameters
            for words, parameters in self.searches.items()
            if not self.bounded or max(parameters.values()) < value
        }


#: The words for types of scalar quantizers.
_RANGES = {
    "QT_8bit": "range of each dimension",
    "QT_8bit_uniform": "one range",
    "QT_8bit ±1": "range −1 to 1",
}


def _one(*values: Any) -> Grid:
    return lambda n, d: values or ("",)


def _shares(*shares: int) -> Grid:
    """Shares of the columns, below the number of rows, each once."""
    return lambda n, d: list(dict.fromkeys(d // share for share in shares if 0 < d // share < n))


def _divisors(*shares: int) -> Grid:
    """The divisors of the number of columns that are nearest below some shares of it."""
    return lambda n, d: list(dict.fromkeys(find_divisor(d, share) for share in shares if d >= share))


def find_divisor(d: int, share: int) -> int:
    """The largest divisor of d that is at most d / share.

    >>> find_divisor(384, 8), find_divisor(50, 8)
    (48, 5)
    """
    return next(m for m in range(d // share, 0, -1) if d % m == 0)


def _cells(n: int, d: int) -> Sequence[int]:
    """Numbers of inverted lists: √n and 4√n, with four rows for each list at least."""
    return [round(times * math.sqrt(n)) for times in (1, 4) if 4 * round(times * math.sqrt(n)) <= n]


_PLAIN: Mapping[str, Mapping[str, int]] = {"": {}}
_RESCORED = {"": {}, ", 4k rescored": {"rescored": 4}, ", 10k rescored": {"rescored": 10}}
_EF_SEARCH = {f", efSearch {ef}": {"efSearch": ef} for ef in (16, 64, 256)}
_NPROBE = {f", nprobe {probes}": {"nprobe": probes} for probes in (1, 4, 16, 64)}

#: All families, exact search first.
FAMILIES: tuple[IndexFamily, ...] = (
    IndexFamily(EXACT, "float32", _one(), faiss_index.build_flat, _PLAIN),
    IndexFamily("float16", "float16", _one("QT_fp16"), faiss_index.build_scalar, _PLAIN),
    IndexFamily("int8", "int8, {}", _one(*_RANGES), faiss_index.build_scalar, _PLAIN),
    IndexFamily("binary", "binary", _one(), build_sign_codes, _RESCORED, uses_rows=True),
    IndexFamily("pq", "PQ, {} bytes", _divisors(8, 16, 32), faiss_index.build_product, _PLAIN, least_rows=256),
    IndexFamily("truncation", "first {} dimensions", _shares(2, 4, 8), faiss_index.build_truncated, _PLAIN),
    IndexFamily("pca", "PCA to {}", _shares(2, 4, 8), faiss_index.build_pca, _PLAIN),
    IndexFamily("hnsw", "HNSW, M {}", _one(16, 32), faiss_index.build_hnsw, _EF_SEARCH),
    IndexFamily("ivf", "IVF, {} lists", _cells, faiss_index.build_ivf, _NPROBE, bounded=True),
)
