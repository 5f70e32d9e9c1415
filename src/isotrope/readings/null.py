"""What isotropic Gaussian rows of the same number and width would give: the null beside every reading.

All of them are drawn with mean squared length 1 and a fixed seed; a reading of degree k is scaled by Q^(k/2).
"""

from __future__ import annotations

import numpy as np

from isotrope.sources.batch import Rows
from isotrope.statistics import Block, Moments, Points, SequenceStatistics, TokenStatistics, TokenTables, block

#: Up to this many numbers the rows themselves are drawn; beyond, their moments.
_DRAW_ROWS_UP_TO = 2_000_000

_SEQUENCES = 64
_SEED = 20_240_315


def draw_isotropic_moments(n: int, d: int) -> Moments:
    """Moments of n rows from N(0, I/d).

    Many rows need not be drawn: their scatter follows a Wishart law, drawn as LLᵀ (Bartlett 1933), and the means of
    rows and of unit rows are normal.
    """
    rng = np.random.default_rng([_SEED, n, d])
    if n * d <= _DRAW_ROWS_UP_TO or n <= d:
        return Moments.of(block(rng.standard_normal((n, d)) / np.sqrt(d)))
    lower = np.tril(rng.standard_normal((d, d)), -1)
    lower[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - 1 - np.arange(d)))
    scatter = (lower @ lower.T) / d
    mean, unit_mean = rng.standard_normal((2, d)) / np.sqrt(n * d)
    return Moments(
        n=n,
        mean=mean,
        scatter=scatter,
        unit_mean=unit_mean,
        unit_scatter=n * (1.0 - float(unit_mean @ unit_mean)),
        energy=float(scatter.trace()) + n * float(mean @ mean),
    )


def draw_isotropic_points(n: int, d: int) -> Points:
    """n rows from N(0, I/d), as points."""
    rng = np.random.default_rng([_SEED, n, d])
    return Points.of(block(rng.standard_normal((n, d)) / np.sqrt(d)))


def draw_isotropic_tokens(like: TokenStatistics | TokenTables, q: float) -> TokenStatistics:
    """Token statistics of rows from N(0, q·I/d), with as many occurrences of each type."""
    n, d, k = like.n, like.d, len(like)
    rng = np.random.default_rng([_SEED, k, d])
    means = rng.standard_normal((k, d)) * np.sqrt(q / (n * d))[:, None]
    scatters = np.where(n > 1, rng.chisquare(np.maximum(d * (n - 1), 1)), 0.0) * (q / d)
    arrays = {
        "types": like.types,
        "n": n,
        "scatters": scatters,
        "energy": scatters + n * np.einsum("ij,ij->i", means, means),
        "means": means,
        "units": rng.standard_normal((k, d), dtype=np.float32) * np.sqrt(n / d, dtype=np.float32)[:, None],
    }
    return TokenStatistics.from_arrays(arrays)


def draw_isotropic_sequences(like: SequenceStatistics) -> Block:
    """Some sequences of rows from N(0, I/d), their lengths drawn as they are distributed in `like`."""
    rng = np.random.default_rng([_SEED, like.d])
    lengths = np.zeros(0, np.int64)
    if like.lengths.any():
        lengths = rng.choice(len(like.lengths), size=_SEQUENCES, p=like.lengths / like.lengths.sum())
    known = Rows(np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths))
    return block(rng.standard_normal((len(known), like.d)) / np.sqrt(like.d), known)
