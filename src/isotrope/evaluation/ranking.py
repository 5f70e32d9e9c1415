"""Scores of a ranking for each query, as trec_eval defines them: nDCG, recall, reciprocal rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: How many documents must be found for all scores.
DEPTH = 100


def ranking_scores(found: NDArray[np.int64], judged: Sequence[Mapping[int, int]]) -> dict[str, Vector]:
    """nDCG@10, recall@10, recall@100 and reciprocal rank at 10 of each query, by name, (n, k) -> (n,).

    found: numbers of documents, the nearest first. judged: for each query, the relevance of documents by number; those
    that it does not name, or calls 0 or less, are not relevant. nDCG takes the relevance itself as gain, with the
    discount log2(rank + 1) (Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418); for recall and reciprocal rank
    every relevance above 0 is the same. A query without a relevant document scores 0.

    >>> scores = ranking_scores(np.array([[7, 3, 5]]), [{3: 1, 5: 2, 8: 1}])
    >>> {name: round(float(value[0]), 4) for name, value in scores.items()}
    {'ndcg_at_10': 0.5209, 'recall_at_10': 0.6667, 'recall_at_100': 0.6667, 'mrr_at_10': 0.5}
    """
    pairs = zip(found.tolist(), judged, strict=True)
    gains = np.array([[max(known.get(document, 0), 0) for document in row] for row, known in pairs], dtype=np.float64)
    relevant = [sorted((r for r in known.values() if r > 0), reverse=True) for known in judged]
    total = np.array([len(gain) for gain in relevant])
    return {
        "ndcg_at_10": _share(_dcg(gains[:, :10]), np.array([_dcg(np.array(gain[:10])) for gain in relevant])),
        "recall_at_10": _share((gains[:, :10] > 0).sum(axis=1), total),
        "recall_at_100": _share((gains[:, :100] > 0).sum(axis=1), total),
        "mrr_at_10": ((gains[:, :10] > 0) / np.arange(1, 11)[: gains.shape[1]]).max(axis=1),
    }


def _dcg(gains: Vector) -> Vector:
    """Gains in the order of their ranks, each with its discount, summed, (..., k) -> (...)."""
    return np.asarray(gains @ (1 / np.log2(np.arange(2, gains.shape[-1] + 2))))


def _share(part: NDArray[np.number], whole: NDArray[np.number]) -> Vector:
    """The share of each part in its whole, 0 where that is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0))
