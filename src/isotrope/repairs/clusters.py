"""Cluster-based isotropy: each cluster centred on its own mean and rid of its own strongest directions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool, slice_rows
from isotrope.errors import InputError
from isotrope.quantization.kmeans import choose_far_apart, find_nearest, fit_kmeans
from isotrope.quantization.quantized import Codes, centre_rows
from isotrope.repairs.repair import repair
from isotrope.repairs.row_repair import RowRepair, StoredMap
from isotrope.statistics.saved_arrays import require, require_consistent, require_counts

Matrix = NDArray[np.float64]

#: Rows compared with centroids at once.
_ROWS = 8192

#: Steps of k-means at most; few data sets need a third of them.
_ITERATIONS = 300

#: What is left of a row below this share of its size is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Clusters(StoredMap):
    """x -> x − mean less its projection on directions, both those of the cluster of the nearest centroid.

    (n, d) -> (n, d). centroids, means: (k, d). directions: (k, D, d), orthonormal, zeros where a cluster has fewer.
    counts: (k,), rows in each cluster.

    >>> flat = Clusters(np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([[0.0, 0.0], [9.0, 0.0]]),
    ...                 np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), np.array([5, 5]))
    >>> flat(np.array([[1.0, 2.0], [8.0, 2.0]])).tolist()
    [[0.0, 2.0], [-1.0, 0.0]]
    """

    centroids: Matrix
    means: Matrix
    directions: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def width(self) -> int:
        return int(self.centroids.shape[1])

    def _map_block(self, x: Matrix) -> Matrix:
        nearest = _find_nearest(x, self.centroids)
        for k in np.unique(nearest):
            mine = nearest == k
            x[mine] = _remove_directions(x[mine], self.means[k], self.directions[k])
        return x

    def inverse(self) -> NoReturn:
        raise InputError(
            "a repair by clusters has no inverse: the directions that it takes out cannot be brought back."
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("centroids", "means", "directions", "counts")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Clusters:
        centroids = require(arrays, "centroids", np.float64, (None, None))
        k, d = centroids.shape
        require_consistent(k > 0 and d > 0, f"the saved centroids are of shape {centroids.shape}")
        directions = require(arrays, "directions", np.float64, (k, None, d))
        means = require(arrays, "means", np.float64, (k, d))
        return cls(centroids, means, directions, require_counts(arrays, "counts", k))


def _find_nearest(rows: NDArray[np.floating[Any]], centroids: Matrix) -> Codes:
    """Which of the centroids, (k, d), is nearest to each of the rows, (n,)."""
    shift = centroids.mean(axis=0)  # a common mean far beyond the spread would cost digits
    with open_pool() as pool:
        cells = [find_nearest(rows[part] - shift, centroids - shift, pool) for part in slice_rows(len(rows), _ROWS)]
    found: Codes = np.concatenate([np.empty(0, np.int64), *cells])
    return found


def _remove_directions(rows: Matrix, mean: NDArray[np.float64], directions: Matrix) -> Matrix:
    """Rows less a mean and less what they have of orthonormal directions, (D, d); zero where only rounding is left."""
    offsets = rows - mean
    left: Matrix = offsets - (offsets @ directions.T) @ directions
    size = np.linalg.norm(rows, axis=1) + np.linalg.norm(mean)
    left[np.linalg.norm(left, axis=1) <= _ROUNDING * size] = 0.0
    return left


def fit_clusters(rows: NDArray[np.floating[Any]], clusters: int, directions: int, seed: int) -> Clusters:
    """Cluster rows, (n, d), and take the mean and at most `directions` principal directions of each cluster.

    Fewer clusters come back where fewer rows differ.
    """
    rng = np.random.default_rng(seed)
    values, mean, scale = centre_rows(rows)
    with open_pool() as pool:
        start = choose_far_apart(values, clusters, rng, pool)
        centroids = mean + scale * fit_kmeans(values, len(start), rng, pool, _ITERATIONS, start).astype(np.float64)
    centroids = centroids[np.unique(_find_nearest(rows, centroids))]  # those that hold a row
    of = _find_nearest(rows, centroids)
    means = np.empty_like(centroids)
    strongest = np.zeros((len(centroids), directions, rows.shape[1]))
    for k in range(len(centroids)):
        members = rows[of == k].astype(np.float64)
        means[k] = members.mean(axis=0)
        found = find_strongest_directions(members - means[k], directions, float(np.abs(members).max()))
        strongest[k, : len(found)] = found
    return Clusters(centroids, means, strongest, np.bincount(of))


def find_strongest_directions(offsets: Matrix, most: int, size: float) -> Matrix:
    """The strongest directions of centred rows, (n, d) -> (r, d), at most as many as they have beyond rounding.

    size: of the largest number in the rows before they were centred, which says how large rounding is.

    >>> abs(find_strongest_directions(np.array([[3.0, 0.0], [-3.0, 0.0]]), 2, 3.0)).round(6).tolist()
    [[1.0, 0.0]]
    """
    n, d = offsets.shape
    most = min(most, d)
    values, vectors = scipy.linalg.eigh(offsets.T @ offsets, subset_by_index=[d - most, d - 1])
    floor = max(n, d) * np.finfo(np.float64).eps * max(values[-1], 0.0) + n * d * (_ROUNDING * size) ** 2
    strong: Matrix = vectors.T[::-1][values[::-1] > floor]
    return strong


@repair("clusters")
class ClusterIsotropy(RowRepair[Clusters]):
    """Rows clustered by k-means, each cluster less its mean and its strongest principal directions.

    New rows belong to the nearest centroid. There is no inverse. A cluster of too few rows to have more directions than
    are taken out becomes zero where it was fitted, and is warned of.

    Args:
        clusters: at most, fewer where fewer rows differ.
        directions: taken out of each cluster, at most its rank.
        seed: of the start of k-means.

    References:
        Rajaee and Pilehvar 2021, A cluster-based approach for improving isotropy in contextual embedding space.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(200, 8)) + np.repeat([[0.0], [50.0]], 100, axis=0)
        >>> repaired = ClusterIsotropy(clusters=2, directions=1).fit(rows).transform(rows)
        >>> bool(abs(repaired[:100].mean(axis=0)).max() < 1e-9), int(np.linalg.matrix_rank(repaired[:100]))
        (True, 7)
    """

    _kind = Clusters

    def __init__(self, clusters: int = 27, directions: int = 12, seed: int = 0) -> None:
        self.clusters = clusters
        self.directions = directions
        self.seed = seed

    def _fit_map(self, rows: NDArray[np.floating[Any]]) -> Clusters:
        d = rows.shape[1]
        if self.clusters < 1 or self.directions < 0:
            raise InputError(
                f"got {self.clusters} clusters and {self.directions} directions, expected at least 1 and at least 0."
            )
        found = fit_clusters(rows, self.clusters, min(self.directions, d), self.seed)
        lost = len(found.counts) if self.directions >= d else int((found.counts <= self.directions + 1).sum())
        if lost:
            warnings.warn(
                f"{lost} of {len(found.counts)} clusters have no more than {self.directions + 1} rows or "
                f"{self.directions} columns: taking {self.directions} directions out makes their rows zero; "
                "give more rows, fewer clusters or fewer directions.",
                stacklevel=3,
            )
        return found
