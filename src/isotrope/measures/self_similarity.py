"""How alike the occurrences of one token type are."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import TokenStatistics, TokenTable
from isotrope.statistics.token_tables import select_types, table

_SHARED: dict[str, Any] = {
    "length_power": 0,
    "null": lambda n, d: 0.0,
    "paper": "Ethayarajh 2019",
    "blind": "Types seen fewer than 10 or more than 100,000 times; each type counts once, however frequent.",
}


def mean_cosine_of(unit_square: float, n: int) -> float:
    """Mean cosine over distinct pairs of n rows from ‖Σu‖²."""
    if n < 2:
        raise Undefined("a cosine between distinct rows needs at least two rows")
    return (unit_square - n) / (n * (n - 1.0))


def _self_similarity(t: TokenStatistics | TokenTable) -> float:
    types = select_types(t, 1)
    several = types.n > 1  # where rows are left out, a type that is frequent in all of them may be left with one
    if not several.any():
        raise Undefined("no token type has two occurrences")
    n = types.n[several]
    return float(np.mean((types.unit_squares[several] - n) / (n * (n - 1.0))))


@measure(
    "tokens",
    title="Self-similarity",
    says="How alike the occurrences of one token type point: 1 the same in every context.",
    range=(-0.112, 1.0),
    formula="mean over types of the mean cosine between a type's occurrences, types with 10 to 100,000 occurrences",
    **_SHARED,
)
def self_similarity(t: TokenStatistics | TokenTable) -> float:
    """Mean cosine between occurrences of one type, averaged over types."""
    return _self_similarity(t)


@measure(
    "tokens",
    title="Self-similarity, adjusted",
    says="How much more alike occurrences of one type are than any two tokens.",
    range=(-2.0, 2.0),
    formula="self_similarity − mean cosine of all tokens of the layer",
    **_SHARED,
)
def self_similarity_adjusted(t: TokenStatistics | TokenTable) -> float:
    """Self-similarity minus the layer's mean cosine."""
    everything = table(t)
    return _self_similarity(t) - mean_cosine_of(everything.unit_square, int(everything.n.sum()))
