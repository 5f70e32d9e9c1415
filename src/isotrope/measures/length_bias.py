"""Whether the length of a text decides where its document lies and how often it is found."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics.text_lengths import TextLengths

#: What the three records share.
_SHARED: dict[str, Any] = {
    "range": (-1.0, 1.0),
    "null": lambda n, d: 0.0,
    "enough": lambda d: 100,
    "paper": "Singhal, Buckley and Mitra 1996 (length of documents in retrieval)",
}


def _correlate(lengths: np.ndarray, values: np.ndarray) -> float:
    """Spearman's correlation of text lengths with something else."""
    if len(lengths) < 3:
        raise Undefined(f"needs three documents with a text, found {len(lengths)}")
    if np.ptp(lengths) == 0.0 or np.ptp(values) == 0.0:
        raise Undefined("all documents are alike in length, or in what it is compared with")
    return float(np.clip(stats.spearmanr(lengths, values).statistic, -1.0, 1.0))


@measure(
    "texts",
    title="Length bias of norms",
    says="Rank correlation of the length of a text with the norm of its vector: matters for inner products.",
    formula="Spearman's ρ of characters and ‖x‖ over documents",
    blind="Cosine search, which does not see norms.",
    **_SHARED,
)
def length_bias_norm(t: TextLengths) -> float:
    """Rank correlation of text length and norm."""
    return _correlate(t.length, t.norm)


@measure(
    "texts",
    title="Length bias of closeness",
    says="Rank correlation of the length of a text with its mean cosine to all other documents.",
    formula="Spearman's ρ of characters and the mean of cos(x_i, x_j) over j ≠ i",
    blind="Whether long texts are close for a good reason, such as covering more subjects.",
    **_SHARED,
)
def length_bias_closeness(t: TextLengths) -> float:
    """Rank correlation of text length and mean cosine to other documents."""
    return _correlate(t.length, t.closeness)


@measure(
    "texts",
    title="Length bias of results",
    says="Rank correlation of the length of a text with how often it is found: by queries, or without any by others.",
    formula="Spearman's ρ of characters and N_k, N_k = in how many lists of k = 10 nearest documents a document is",
    blind="Whether long texts answer more queries. Without queries, what documents find is not what users find.",
    **_SHARED,
)
def length_bias_results(t: TextLengths) -> float:
    """Rank correlation of text length and how often a document is found."""
    return _correlate(t.length, t.found)
