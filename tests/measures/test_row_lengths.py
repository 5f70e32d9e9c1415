"""Rows of very unequal lengths, from 1e-20 to 1e20: no measure loses the short ones or the long ones unnoticed.

The references below follow the definitions row by row and share no code with isotrope.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats

import isotrope
from isotrope.errors import Undefined
from isotrope.measures import MEASURES, Measure, get
from isotrope.quantization.cells import Cells
from isotrope.sources.batch import Rows
from isotrope.statistics import Image, Moments, Points, QueriedPoints, TextLengths, prepare_rows
from test_accuracy import of_moments, of_sequences, of_tokens
from testkit.statistics_by_need import STATISTICS

COUNT, WIDTH, LENGTH = 273, 12, 7
ROWS_TO: dict[str, Callable[[np.ndarray], Any]] = {"numpy": lambda rows: rows, "torch": torch.from_numpy}
PRECISIONS = {"fast": np.float32, "exact": np.float64}

#: Largest error of a value, relative to it where it is above 1. Spectra of sequences are resolved to 1e-7 of their
#: largest value, and the reach is read off a grid of a thousand steps.
TOLERANCE = {"fast": 1e-5, "exact": 1e-9}
COARSER = {"spectra": 1e-6, "sequence_spectral_reach": 1e-3}

#: Measures of the rows' directions alone.
DIRECTIONS = (
    "mean_cosine",
    "token_uniformity",
    "outlier_dimensions",
    "outlier_dimension_share",
    "self_similarity",
    "self_similarity_adjusted",
    "sequence_uniformity",
    "cls_uniformity",
    "rbf_distance",
    "hubness",
    "lsds",
)

#: Measures of the rows as they are that have a reference here; the others must be numbers or have a reason.
MEASURED = [m for m in MEASURES if m.needs in STATISTICS]
CHECKED = [get(f"{m.name}_4x16") if m.needs == "cells" else m for m in MEASURES if m.needs != "layers"]


def known(n: int) -> Rows:
    """Sequences of a few rows, of types of unequal frequency."""
    token = (6 * np.random.default_rng(n).random(n) ** 2).astype(np.int64)
    return Rows((np.arange(n) // LENGTH).astype(np.uint64), token=token, position=np.arange(n) % LENGTH)


def _lengths() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    ones = np.ones(COUNT)
    one_type = np.where(known(COUNT).token == 1, 1e-20, 1.0)
    return {
        "one row of 1e-20": np.where(np.arange(COUNT) == 100, 1e-20, ones),
        "one row of 1e20": np.where(np.arange(COUNT) == 100, 1e20, ones),
        "half the rows at 1e-8": np.where(rng.random(COUNT) < 0.5, 1e-8, ones),
        "every seventh row at 1e10": np.where(np.arange(COUNT) % LENGTH == 0, 1e10, ones),
        "whole sequences at 1e-20": np.where(np.arange(COUNT) // LENGTH % 5 == 2, 1e-20, ones),
        "one token type at 1e-20": one_type,
        "all between 1e-20 and 1e20": 10.0 ** rng.uniform(-20, 20, COUNT),
        "all between 1e-3 and 1e3": 10.0 ** rng.uniform(-3, 3, COUNT),
        "all at 1e-20": 1e-20 * ones,
        "all at 1e20": 1e20 * ones,
    }


LENGTHS = _lengths()
every_length = pytest.mark.parametrize("lengths", LENGTHS)
every_precision = pytest.mark.parametrize("precision", PRECISIONS)


def directions() -> np.ndarray:
    """Unit rows with a common direction and a falling spectrum."""
    rows = np.random.default_rng(0).standard_normal((COUNT, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1)) + 0.4
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def rows_of(lengths: str, precision: str) -> np.ndarray:
    # Not all of exactly one length: a line through equal lengths has no slope to compare.
    unequal = np.random.default_rng(4).uniform(0.5, 2.0, COUNT) * LENGTHS[lengths]
    return (directions() * unequal[:, None]).astype(PRECISIONS[precision])


def unit(rows: np.ndarray) -> np.ndarray:
    """Unit rows in extended precision."""
    wide = rows.astype(np.longdouble)
    return wide / np.sqrt((wide**2).sum(axis=1, keepdims=True))


def mean_of_pairs(u: np.ndarray) -> float:
    """Mean cosine of distinct rows, every pair on its own, added without rounding."""
    products = (u @ u.T).astype(np.float64)
    return math.fsum(products[np.triu_indices(len(u), 1)]) * 2 / (len(u) * (len(u) - 1))


def of_directions(rows: np.ndarray) -> dict[str, float]:
    """The measures of directions of one set of rows."""
    u, token, sequence = unit(rows), known(COUNT).token, known(COUNT).sequence
    assert token is not None
    types = [u[token == t] for t in np.unique(token) if (token == t).sum() >= 10]
    parts = [u[sequence == s] for s in np.unique(sequence)]
    shares = np.sort((u.mean(axis=0) ** 2 / (u.mean(axis=0) ** 2).sum()).astype(np.float64))[::-1]
    apart = np.array([((u - row) ** 2).sum(axis=1) for row in u], dtype=np.float64)
    nearest = np.argsort(apart + np.diag(np.full(COUNT, np.inf)), axis=1)[:, :10]
    cosine, alike = mean_of_pairs(u), float(np.mean([mean_of_pairs(part) for part in types]))
    squares = apart[np.triu_indices(COUNT, 1)]
    return {
        "mean_cosine": cosine,
        "token_uniformity": cosine,
        "outlier_dimensions": float(1 + (np.cumsum(shares) < 0.5).sum()),
        "outlier_dimension_share": float(shares[0]),
        "self_similarity": alike,
        "self_similarity_adjusted": alike - cosine,
        "sequence_uniformity": float(np.mean([mean_of_pairs(part) for part in parts])),
        "cls_uniformity": float(np.mean([(part[1:] @ part[0]).mean() for part in parts])),
        "rbf_distance": float(special.logsumexp(-squares / 0.5) - math.log(len(squares))),
        "hubness": float(stats.skew(np.bincount(nearest.ravel(), minlength=COUNT))),
    }


@cache
def reference(lengths: str, precision: str) -> dict[str, float]:
    """All measures that the definitions give without isotrope's code."""
    rows = rows_of(lengths, precision)
    wide = rows.astype(np.float64)
    about = known(COUNT)
    found = of_moments(wide) | of_tokens(wide, about.token) | of_sequences(wide, about.sequence)
    return {name: float(value) for name, value in (found | of_directions(rows)).items()}


def statistic(need: str, rows: np.ndarray, kind: str = "numpy", splits: int = 1) -> Any:
    """What measures of one need take, of rows that come in several parts, in the order of their sequences."""
    about = known(COUNT)
    if need == "image":
        return Image.of(ROWS_TO[kind](rows), ROWS_TO[kind](rows[:, ::-1].copy()))
    if need == "queries":
        return QueriedPoints.of(ROWS_TO[kind](rows), ROWS_TO[kind](rows[:, ::-1].copy()))
    if need == "texts":
        points = Points.of(prepare_rows(ROWS_TO[kind](rows)))
        return TextLengths.of(points, {int(row): 3 + int(row) % 11 for row in points.sequence})
    edges = np.linspace(0, COUNT // LENGTH, splits + 1).astype(int) * LENGTH
    parts = [np.arange(a, b) for a, b in itertools.pairwise(edges)]
    made = STATISTICS["sample" if need == "cells" else need]
    return reduce(operator.add, (made.of(prepare_rows(ROWS_TO[kind](rows[part]), about.take(part))) for part in parts))


def value(m: Measure, statistic: Any) -> float:
    """The value; NaN only with a reason."""
    found, reason = math.nan, ""
    try:
        found = m.value(Cells.of(statistic, **m.parameters) if m.needs == "cells" else statistic)
    except Undefined as error:
        reason = str(error)
    assert math.isfinite(found) or len(reason) > 10, m.name
    return found


def tolerance(m: Measure, precision: str) -> float:
    return max(TOLERANCE[precision], COARSER.get(m.needs, 0.0), COARSER.get(m.name, 0.0))


def is_close(found: float, expected: float, tolerance: float) -> bool:
    if math.isnan(found) or math.isnan(expected):
        return math.isnan(found) and math.isnan(expected)
    return abs(found - expected) <= tolerance * max(1.0, abs(expected))


@every_length
@every_precision
@pytest.mark.parametrize("kind", ROWS_TO)
def test_measures_equal_their_definitions_whatever_the_lengths(lengths: str, precision: str, kind: str) -> None:
    rows = rows_of(lengths, precision)
    expected = reference(lengths, precision)
    for splits in (1, 2, 39):
        taken = {need: statistic(need, rows, kind, splits) for need in STATISTICS}
        found = {m.name: value(m, taken[m.needs]) for m in MEASURED if m.name in expected}
        assert found.keys() == expected.keys()
        wrong = {
            name: (found[name], expected[name])
            for name in found
            if not is_close(found[name], expected[name], tolerance(get(name), precision))
        }
        assert not wrong, (splits, wrong)


@pytest.mark.parametrize("m", CHECKED, ids=lambda m: m.name)
@every_length
def test_a_value_is_a_number_or_has_a_reason_whatever_the_lengths(m: Measure, lengths: str) -> None:
    for precision in ["exact"] if m.needs == "cells" else PRECISIONS:
        value(m, statistic(m.needs, rows_of(lengths, precision)))


@pytest.mark.parametrize("name", DIRECTIONS)
@every_length
@every_precision
def test_measures_of_directions_do_not_see_lengths(name: str, lengths: str, precision: str) -> None:
    m = get(name)
    rows = rows_of(lengths, precision)
    u = unit(rows).astype(np.float64)
    if m.needs == "image":
        image = u[:, ::-1].copy()
        found = m(rows, (image * LENGTHS[lengths][:, None]).astype(rows.dtype))
        assert is_close(found, m(u, image), TOLERANCE[precision])
    else:
        found, expected = (value(m, statistic(m.needs, taken)) for taken in (rows, u))
        assert is_close(found, expected, TOLERANCE[precision])


def test_one_row_of_almost_no_length_does_not_hide_a_collapse() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 64)) + 4.0
    rows = np.vstack([rows, 1e-20 * np.eye(64)[:1]])
    expected = mean_of_pairs(unit(rows))
    assert expected > 0.93
    assert isotrope.measure(rows, "mean_cosine")["mean_cosine"] == pytest.approx(expected, rel=1e-12)
    findings = isotrope.scan(vectors=rows, measures="mean_cosine")
    assert findings.get("mean_cosine", 0).value == pytest.approx(expected, rel=1e-12)
    assert findings.verdict.word == "collapsed"


@every_precision
@pytest.mark.parametrize("kind", ROWS_TO)
@pytest.mark.parametrize("spread", [1e-2, 1e-5, 1e-7])
def test_the_scatter_of_nearly_parallel_rows_keeps_its_digits(spread: float, kind: str, precision: str) -> None:
    """1 − mean cosine is accurate relative to itself: of the rows as they are stored, rounding included."""
    rng = np.random.default_rng(2)
    rows = (rng.uniform(0.1, 10.0, (900, 1)) * (1.0 + spread * rng.standard_normal((900, 20)))).astype(
        PRECISIONS[precision]
    )
    u = unit(rows)
    expected = float(((u - u.mean(axis=0)) ** 2).sum())
    for size in (900, 100):
        parts = [Moments.of(prepare_rows(ROWS_TO[kind](rows[i : i + size].copy()))) for i in range(0, 900, size)]
        # Rounding of unit rows in float64 itself is 1e-16, of which the smallest scatter here is 1e-14.
        found = reduce(lambda a, b: a + b, parts).unit_scatter
        assert found == pytest.approx(expected, rel=1e-12 if spread > 1e-6 else 1e-8)


def test_token_types_of_short_rows_keep_their_own_variance() -> None:
    rows = rows_of("one token type at 1e-20", "exact")
    about = known(COUNT)
    short = rows[about.token == 1]
    for splits in (1, 4):
        table = statistic("tokens", rows, splits=splits).table
        at = int(np.flatnonzero(table.types == 1)[0])
        mean = short.mean(axis=0)
        assert table.m[at] == pytest.approx(float(mean @ mean), rel=1e-12)
        assert table.v[at] == pytest.approx(float(((short - mean) ** 2).sum(axis=1).mean()), rel=1e-12)
