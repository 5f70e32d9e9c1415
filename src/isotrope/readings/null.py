"""Null values: what isotropic Gaussian rows of the same number and width would give.

All of them are drawn with mean squared length 1 and a fixed seed; a reading of degree k is scaled by Q^(k/2).
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from scipy.special import gammaln

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.errors import Undefined
from isotrope.measures.record import Measure
from isotrope.quantization.cells import Cells
from isotrope.sources.batch import Rows
from isotrope.statistics import (
    Moments,
    Points,
    QueriedPoints,
    Sample,
    SequenceSpectra,
    SequenceStatistics,
    Summary,
    TokenStatistics,
    TokenTables,
    UsableRows,
    prepare_rows,
)
from isotrope.statistics.norm_moments import NormMoments

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
        return Moments.of(prepare_rows(rng.standard_normal((n, d)) / np.sqrt(d)))
    lower = np.tril(rng.standard_normal((d, d)), -1)
    lower[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - 1 - np.arange(d)))
    scatter = (lower @ lower.T) / d
    mean, unit_mean = rng.standard_normal((2, d)) / np.sqrt(n * d)
    length, deviation = _compute_length(d)
    norms = NormMoments(length + deviation * rng.standard_normal() / math.sqrt(n), deviation**2 * rng.chisquare(n - 1))
    return Moments(
        n=n,
        mean=mean,
        scatter=scatter,
        unit_mean=unit_mean,
        unit_scatter=n * (1.0 - float(unit_mean @ unit_mean)),
        energy=float(scatter.trace()) + n * float(mean @ mean),
        norms=norms,
    )


def _compute_length(d: int) -> tuple[float, float]:
    """Mean and standard deviation of the length of a row from N(0, I/d), a χ variable over √d."""
    mean = math.sqrt(2.0 / d) * math.exp(float(gammaln((d + 1) / 2.0) - gammaln(d / 2.0)))
    return mean, math.sqrt(max(0.0, 1.0 - mean**2))


def draw_isotropic_points(n: int, d: int) -> Points:
    """n rows from N(0, I/d), as points."""
    rng = np.random.default_rng([_SEED, n, d])
    return Points.of(prepare_rows(rng.standard_normal((n, d)) / np.sqrt(d)))


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
        "energy": scatters + n * compute_squared_lengths(means),
        "means": means,
        "units": rng.standard_normal((k, d), dtype=np.float32) * np.sqrt(n / d, dtype=np.float32)[:, None],
    }
    return TokenStatistics.from_arrays(arrays)


def draw_isotropic_sequences(like: SequenceStatistics) -> UsableRows:
    """Some sequences of rows from N(0, I/d), their lengths drawn as they are distributed in `like`."""
    rng = np.random.default_rng([_SEED, like.d])
    lengths = np.zeros(0, np.int64)
    if like.lengths.any():
        lengths = rng.choice(len(like.lengths), size=_SEQUENCES, p=like.lengths / like.lengths.sum())
    known = Rows(np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths))
    return prepare_rows(rng.standard_normal((len(known), like.d)) / np.sqrt(like.d), known)


class Nulls:
    """Null statistics, drawn once for each shape, because all layers of a run share it."""

    def __init__(self) -> None:
        self._moments: dict[tuple[int, int], Moments] = {}
        self._points: dict[tuple[int, int], Points] = {}
        self._on_points: dict[tuple[str, str, int, int], float] = {}
        self._cells: dict[tuple[Any, ...], Cells] = {}
        self._queried: dict[tuple[int, int, int], QueriedPoints] = {}
        self._sequences: dict[bytes, tuple[SequenceStatistics, SequenceSpectra]] = {}
        self._tokens_of = threading.local()  # layers are read side by side, and each has its own
        self._lock = threading.Lock()

    def value(self, m: Measure, summary: Summary, queries: Sample | None = None) -> float:
        """What isotropic Gaussian rows, and as many queries, of the same shape and mean squared norm would give."""
        actual = summary.moments
        if actual.n < 2:
            return math.nan
        n = summary.sample.n if m.needs in ("sample", "cells", "queries") and summary.sample is not None else actual.n
        n = n if m.null_rows is None else min(n, m.null_rows)
        if m.null is not None:
            return m.null(n, actual.d)
        q = actual.energy / actual.n
        try:
            if m.needs == "moments":
                return m.value(self._isotropic(n, actual.d)) * float(q ** (m.degree / 2))
            if m.needs == "sample":
                return self._sample(m, n, actual.d, q)
            if m.needs == "queries":
                return math.nan if queries is None else m.value(self._isotropic_queries(n, queries.n, actual.d))
            if m.needs == "cells":
                return self._value_on_cells(m, n, actual.d)
            if m.needs == "tokens":
                return m.value(self._tokens(summary, q))
            return m.value(self._sequence(summary)[0 if m.needs == "sequences" else 1])
        except Undefined:
            return math.nan

    def _isotropic(self, n: int, d: int) -> Moments:
        with self._lock:
            if (n, d) not in self._moments:
                self._moments[n, d] = draw_isotropic_moments(n, d)
            return self._moments[n, d]

    def _isotropic_points(self, n: int, d: int) -> Points:
        if (n, d) not in self._points:
            # Two shapes at a time, because they are large: that of the rows and that of smaller simulations.
            last = dict(list(self._points.items())[-1:])
            self._points = last | {(n, d): draw_isotropic_points(n, d)}
        return self._points[n, d]

    def _isotropic_queries(self, n: int, queries: int, d: int) -> QueriedPoints:
        """Documents and queries of one isotropic space; no measure of them depends on a scale."""
        with self._lock:
            if (n, queries, d) not in self._queried:
                both = draw_isotropic_points(n + queries, d)
                is_query = np.arange(n + queries) >= n
                self._queried = {(n, queries, d): QueriedPoints(both.only(~is_query), both.only(is_query))}
            return self._queried[n, queries, d]

    def _value_on_cells(self, m: Measure, n: int, d: int) -> float:
        """The value on cells; no measure of cells depends on a scale."""
        with self._lock:
            if (key := (m.name, m.variant, n, d)) not in self._on_points:
                if (m.statistic, n, d) not in self._cells:
                    cells = Cells.of(self._isotropic_points(n, d), **m.parameters)
                    self._cells = {(m.statistic, n, d): cells}
                self._on_points[key] = m.value(self._cells[m.statistic, n, d])
            return self._on_points[key]

    def _sample(self, m: Measure, n: int, d: int, q: float) -> float:
        with self._lock:
            points = self._isotropic_points(n, d)
            if "scale" not in m.invariant:
                return m.value(points.scale(math.sqrt(q)))
            if (key := (m.name, m.variant, n, d)) not in self._on_points:
                self._on_points[key] = m.value(points)
            return self._on_points[key]

    def _tokens(self, summary: Summary, q: float) -> TokenStatistics:
        tokens = summary.tokens
        assert tokens is not None
        last: tuple[object, TokenStatistics] | None = getattr(self._tokens_of, "last", None)
        if last is None or last[0] is not tokens:
            self._tokens_of.last = last = (tokens, draw_isotropic_tokens(tokens, q))
        return last[1]

    def _sequence(self, summary: Summary) -> tuple[SequenceStatistics, SequenceSpectra]:
        sequences = summary.sequences
        assert sequences is not None
        key = sequences.lengths.tobytes() + bytes(str(sequences.d), "ascii")
        with self._lock:
            if key not in self._sequences:
                drawn = draw_isotropic_sequences(sequences)
                self._sequences[key] = (SequenceStatistics.of(drawn), SequenceSpectra.of(drawn))
            return self._sequences[key]
