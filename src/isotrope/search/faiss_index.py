"""Indexes of faiss: how each is built from unit rows, what a vector costs in it, and how it is searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MissingExtra

#: Unit rows, (n, d).
UnitRows: TypeAlias = NDArray[np.float32]

#: Numbers of the rows that were found for each query, the nearest first, -1 where there are fewer, (q, k).
Found: TypeAlias = NDArray[np.int64]

#: Rows that train a product quantizer at most, for each of its 256 centroids: below this number faiss warns.
_TRAINING_POINTS = 39

#: Which parameters of a search belong to which class of faiss.
_SEARCH_PARAMETERS = {"efSearch": "SearchParametersHNSW", "nprobe": "SearchParametersIVF"}


class VectorIndex(Protocol):
    """An index of rows.

    Attributes:
        bytes_per_vector: Bytes that the index holds in memory for each vector, without what all vectors share.
    """

    @property
    def bytes_per_vector(self) -> float: ...

    def search(self, queries: UnitRows, k: int, parameters: Mapping[str, int]) -> Found:
        """Find k rows for each query, (q, d) -> (q, k)."""


@dataclass(frozen=True)
class FaissIndex:
    """An index of faiss that holds its rows."""

    index: Any
    bytes_per_vector: float

    def search(self, queries: UnitRows, k: int, parameters: Mapping[str, int]) -> Found:
        """Find k rows for each query; parameters: `efSearch` of HNSW, `nprobe` of IVF."""
        faiss = import_faiss()
        kinds = {_SEARCH_PARAMETERS[name] for name in parameters}
        settings = getattr(faiss, kinds.pop())(**parameters) if kinds else None
        _, found = self.index.search(queries, k, params=settings)
        return np.asarray(found)


def import_faiss() -> Any:
    """The library, or the command that installs it."""
    try:
        import faiss
    except ImportError:
        raise MissingExtra("faiss-cpu", "quantize", "isotrope evaluate index") from None
    return faiss


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Let faiss compute on one thread, so that its speed says what one core does and its indexes are repeatable."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def build_flat(rows: UnitRows, value: Any, seed: int) -> FaissIndex:
    """Exact search by inner product on float32."""
    return _fill(import_faiss().IndexFlatIP(rows.shape[1]), rows, 4.0 * rows.shape[1])


def build_scalar(rows: UnitRows, value: str, seed: int) -> FaissIndex:
    """A scalar quantizer; value: its type, such as "QT_fp16" or "QT_8bit", with "±1" behind it for that range."""
    faiss = import_faiss()
    d = rows.shape[1]
    name, _, fixed = value.partition(" ")
    kind = getattr(faiss.ScalarQuantizer, name)
    index = faiss.IndexScalarQuantizer(d, kind, faiss.METRIC_INNER_PRODUCT)
    if fixed:  # the range of training rows is the range of the codes
        index.train(np.stack([np.full(d, -1.0), np.full(d, 1.0)]).astype(np.float32))
    return _fill(index, rows, float(index.sa_code_size()))


def build_product(rows: UnitRows, value: int, seed: int) -> FaissIndex:
    """A product quantizer of `value` codes of 8 bits, trained on at most 9,984 rows."""
    faiss = import_faiss()
    index = faiss.IndexPQ(rows.shape[1], value, 8, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.seed = seed
    index.pq.cp.min_points_per_centroid = 1
    index.pq.cp.max_points_per_centroid = _TRAINING_POINTS
    return _fill(index, rows, float(value))


def build_truncated(rows: UnitRows, value: int, seed: int) -> FaissIndex:
    """The first `value` dimensions, with unit length again, by inner product."""
    faiss = import_faiss()
    index = faiss.IndexPreTransform(faiss.NormalizationTransform(value), faiss.IndexFlatIP(value))
    index.prepend_transform(faiss.RemapDimensionsTransform(rows.shape[1], value, False))
    return _fill(index, rows, 4.0 * value)


def build_pca(rows: UnitRows, value: int, seed: int) -> FaissIndex:
    """The first `value` principal components, by Euclidean distance: of unit rows it has the order of cosines."""
    faiss = import_faiss()
    index = faiss.IndexPreTransform(faiss.PCAMatrix(rows.shape[1], value), faiss.IndexFlatL2(value))
    return _fill(index, rows, 4.0 * value)


def build_hnsw(rows: UnitRows, value: int, seed: int) -> FaissIndex:
    """A graph of `value` links for each row and level, built with faiss's default efConstruction."""
    faiss = import_faiss()
    index = faiss.IndexHNSWFlat(rows.shape[1], value, faiss.METRIC_INNER_PRODUCT)
    made = _fill(index, rows, 0.0)
    return FaissIndex(index, 4.0 * rows.shape[1] + 4.0 * made.index.hnsw.neighbors.size() / len(rows))


def build_ivf(rows: UnitRows, value: int, seed: int) -> FaissIndex:
    """Inverted lists of `value` cells, with float32 rows and 64-bit ids."""
    faiss = import_faiss()
    d = rows.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, value, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.min_points_per_centroid = 1
    return _fill(index, rows, 4.0 * d + 8)


def _fill(index: Any, rows: UnitRows, bytes_per_vector: float) -> FaissIndex:
    if not index.is_trained:
        index.train(rows)
    index.add(rows)
    return FaissIndex(index, bytes_per_vector)
