"""Projections of rows to two dimensions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.errors import MissingExtra

#: Principal components that t-SNE is given, as its authors do: the rest is mostly noise.
_COMPONENTS = 50

#: The effective number of neighbours of each row.
_PERPLEXITY = 30.0


def project_tsne(rows: NDArray[np.float64], seed: int, components: int | None = _COMPONENTS) -> NDArray[np.float32]:
    """Project rows by t-SNE, so that nearest neighbours by cosine stay neighbours.

    Args:
        rows: (n, d).
        seed: of the optimisation.
        components: the principal components that it is given; None for all, as for whitened rows, where all are alike.

    Returns:
        Points, (n, 2).

    References:
        van der Maaten and Hinton 2008; Poličar, Stražar and Zupan 2024 (openTSNE).

    Examples:
        >>> project_tsne(np.eye(8), seed=0).shape
        (8, 2)
    """
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise MissingExtra("openTSNE", "figures", "a map by t-SNE") from error
    # Distances of unit rows go by cosine, and their mean plays no part in distances.
    units = to_unit_rows(rows)
    units -= units.mean(axis=0)
    if components is not None:
        units = units @ np.linalg.eigh(units.T @ units)[1][:, ::-1][:, : min(components, *units.shape)]
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    points = TSNE(perplexity=perplexity, random_state=seed, n_jobs=1, neighbors="exact").fit(units)
    return np.asarray(points, dtype=np.float32)


def project_uncentred(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project rows, (n, d), onto the two strongest directions of their uncentred cloud, (n, 2)."""
    vectors = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :2]
    vectors *= np.where((rows @ vectors).mean(axis=0) < 0, -1.0, 1.0)
    return np.asarray(rows @ vectors)


def find_plane(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two directions, (d, 2), in which the means of token types, (k, d), and the origin spread most."""
    points = np.vstack([means, np.zeros(means.shape[1])])
    return np.asarray(np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:2].T)
