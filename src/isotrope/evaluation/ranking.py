"""Ranking of documents: exact search by cosine in constant memory, and scores of a ranking as in trec_eval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.errors import InputError

#: Number of documents that the scores of a ranking need.
DEPTH = 100

#: Stands where there is no document.
NOTHING = -1

#: Queries and documents of one matrix product.
_QUERIES, _DOCUMENTS = 256, 4096

#: A cosine and the rank of its document's id make one integer key, so that all keys are different and sorting needs no
#: other rule: 34 bits for the cosine in steps of 2e-10, 30 bits for the rank of the id.
_STEPS, _ID_BITS = 2.0**32, 30

#: The key of a document that must not be found.
_LOWEST = np.iinfo(np.int64).min


class Ranking(NamedTuple):
    """Numbers of the documents found for each query, the nearest first, NOTHING where there are fewer, and cosines."""

    documents: NDArray[np.int64]
    cosines: NDArray[np.float64]


def search(
    queries: NDArray[Any], documents: Iterable[NDArray[Any]], ids: Sequence[str], k: int, own: NDArray[np.int64]
) -> Ranking:
    """Find the k nearest documents of each query by cosine, the nearest first, (n, d) -> (n, k).

    Of equally near documents the one with the greater id comes first, as in trec_eval. Rows with NaN or infinity are
    never found and find nothing; rows of zeros have cosine 0 to all. The result does not depend on the block size.

    Args:
        queries: rows of the queries, (n, d).
        documents: blocks of rows, in the order of ids.
        ids: ids of the documents.
        k: number of documents for each query.
        own: for each query the number of a document that it must not find, or NOTHING, (n,).

    Returns:
        Numbers of documents and their cosines, (n, k) each; NOTHING and NaN where there are fewer than k.

    Examples:
        >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
        >>> search(np.array([[1.0, 0.1]]), [rows], ["a", "b", "c", "d"], 3, np.array([NOTHING])).documents.tolist()
        [[2, 0, 3]]
    """
    if len(ids) >= 1 << _ID_BITS:
        raise InputError(f"got {len(ids):,} documents, expected fewer than {1 << _ID_BITS:,}; search a part of them.")
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    id_ranks = np.empty_like(order)
    id_ranks[order] = np.arange(len(ids))
    directions = _unit_rows(queries)
    best = np.full((len(queries), k), _LOWEST)
    start = 0
    for block in documents:
        _check_count(start + len(block), len(ids), whole=False)
        for low in range(0, len(block), _DOCUMENTS):
            rows = _unit_rows(block[low : low + _DOCUMENTS])
            here = slice(start, start + len(rows))
            for first in range(0, len(queries), _QUERIES):
                asked = slice(first, first + _QUERIES)
                keys = _keys(directions[asked] @ rows.T, id_ranks[here])
                (asking,) = np.nonzero((own[asked] >= here.start) & (own[asked] < here.stop))
                keys[asking, own[asked][asking] - start] = _LOWEST
                best[asked] = np.partition(np.hstack([best[asked], keys]), -k, axis=1)[:, -k:]
            start = here.stop
    _check_count(start, len(ids), whole=True)
    best = np.sort(best, axis=1)[:, ::-1]
    missing = best == _LOWEST
    found = np.where(missing, NOTHING, order[best & ((1 << _ID_BITS) - 1)])
    return Ranking(found, np.where(missing, np.nan, (best >> _ID_BITS) / _STEPS))


def _unit_rows(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1; zero rows stay zero, rows with NaN or infinity become NaN."""
    wide = rows.astype(np.float64)
    wide[~np.isfinite(wide).all(axis=1)] = np.nan
    return np.asarray(to_unit_rows(wide))


def _keys(cosines: NDArray[np.float64], id_ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Integers in the order of the cosines (q, m), and of the ranks of ids (m,) where cosines are equal."""
    known = np.isfinite(cosines)
    steps = np.rint(np.where(known, cosines, 0.0) * _STEPS).astype(np.int64)
    return np.where(known, (steps << _ID_BITS) | id_ranks, _LOWEST)


def _check_count(rows: int, documents: int, *, whole: bool) -> None:
    if rows > documents or (whole and rows < documents):
        raise InputError(f"got {rows:,} rows of {documents:,} documents; give one for each.")


def score_rankings(found: NDArray[np.int64], judged: Sequence[Mapping[int, int]]) -> dict[str, NDArray[np.float64]]:
    """Compute nDCG@10, recall@10, recall@100 and reciprocal rank at 10 of each query, by name, (n, k) -> (n,).

    The gain of nDCG is the relevance itself, with the discount log2(rank + 1). For recall and reciprocal rank every
    relevance above 0 is the same. A query without a relevant document scores 0.

    Args:
        found: numbers of documents, the nearest first.
        judged: for each query the relevance of documents by number. Other documents, and those of relevance 0 or less,
            are not relevant.

    References:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418

    Examples:
        >>> scores = score_rankings(np.array([[7, 3, 5]]), [{3: 1, 5: 2, 8: 1}])
        >>> {name: round(float(value[0]), 4) for name, value in scores.items()}
        {'ndcg_at_10': 0.5209, 'recall_at_10': 0.6667, 'recall_at_100': 0.6667, 'mrr_at_10': 0.5}
    """
    pairs = zip(found.tolist(), judged, strict=True)
    gains = np.array([[max(known.get(document, 0), 0) for document in row] for row, known in pairs], dtype=np.float64)
    relevant = [sorted((r for r in known.values() if r > 0), reverse=True) for known in judged]
    total = np.array([len(gain) for gain in relevant])
    return {
        "ndcg_at_10": _divide(_dcg(gains[:, :10]), np.array([_dcg(np.array(gain[:10])) for gain in relevant])),
        "recall_at_10": _divide((gains[:, :10] > 0).sum(axis=1), total),
        "recall_at_100": _divide((gains[:, :100] > 0).sum(axis=1), total),
        "mrr_at_10": ((gains[:, :10] > 0) / np.arange(1, 11)[: gains.shape[1]]).max(axis=1),
    }


def _dcg(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Discounted cumulative gain of gains in the order of their ranks, (..., k) -> (...)."""
    return np.asarray(gains @ (1 / np.log2(np.arange(2, gains.shape[-1] + 2))))


def _divide(part: NDArray[np.number], whole: NDArray[np.number]) -> NDArray[np.float64]:
    """Each part divided by its whole, 0 where that is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0))
