"""Rows on a plane that keeps neighbours together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MissingExtra

#: Principal components that t-SNE is given, as its authors do: the rest is nearly all noise.
_COMPONENTS = 50

#: Neighbours that each row is held near to, about.
_PERPLEXITY = 30.0


def tsne(rows: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    """Place rows, (n, d) -> (n, 2), so that neighbours by cosine stay neighbours.

    Papers: van der Maaten and Hinton 2008; Poličar, Stražar and Zupan 2024 (openTSNE).

    >>> tsne(np.eye(8), seed=0).shape
    (8, 2)
    """
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise MissingExtra("openTSNE", "figures", "a map by t-SNE") from error
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # Distances of unit rows go by cosine, and their mean plays no part in distances.
    units = rows / np.where(lengths > 0, lengths, 1.0)
    units -= units.mean(axis=0)
    vectors = np.linalg.eigh(units.T @ units)[1][:, ::-1][:, : min(_COMPONENTS, *units.shape)]
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    made = TSNE(perplexity=perplexity, random_state=seed, n_jobs=1, neighbors="exact").fit(units @ vectors)
    return np.asarray(made, dtype=np.float32)
