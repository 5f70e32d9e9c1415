"""Measures of queries against documents, each against a plain computation or a closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isotrope.measures import (
    far_queries,
    never_returned,
    query_gap,
    query_hubness,
    query_margin,
    query_mean_cosine,
)

K = 10


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def documents() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((400, 12)) + 0.4


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    rng = np.random.default_rng(1)
    return 2.0 * rng.standard_normal((150, 12)) + np.linspace(0.0, 1.0, 12)


@pytest.fixture(scope="module")
def scores(documents: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Cosines of every query with every document."""
    return unit(queries) @ unit(documents).T


def test_the_gap_is_the_distance_of_the_means_in_units_of_the_spread(
    documents: np.ndarray, queries: np.ndarray
) -> None:
    spread = math.sqrt(np.trace(np.cov(documents.T, ddof=0)))
    apart = np.linalg.norm(queries.mean(axis=0) - documents.mean(axis=0))
    assert query_gap(documents, queries) == pytest.approx(apart / spread, rel=1e-12)


def test_a_shift_of_the_queries_by_twice_the_spread_is_a_gap_of_two(documents: np.ndarray) -> None:
    spread = math.sqrt(documents.var(axis=0).sum())
    away = np.zeros(12)
    away[3] = 2.0 * spread
    assert query_gap(documents, documents + away) == pytest.approx(2.0, rel=1e-12)
    assert query_gap(documents, documents) == pytest.approx(0.0, abs=1e-12)


def test_the_cosine_of_the_means(documents: np.ndarray, queries: np.ndarray) -> None:
    one, other = queries.mean(axis=0), documents.mean(axis=0)
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert query_mean_cosine(documents, queries) == pytest.approx(expected, rel=1e-12)
    assert query_mean_cosine(documents, -3.0 * documents) == pytest.approx(-1.0, rel=1e-12)


def test_far_queries_are_beyond_what_is_usual_between_documents(
    documents: np.ndarray, queries: np.ndarray, scores: np.ndarray
) -> None:
    among = unit(documents) @ unit(documents).T
    np.fill_diagonal(among, -np.inf)
    usual = np.quantile(np.sqrt(2.0 - 2.0 * among.max(axis=1)), 0.99)
    expected = np.mean(np.sqrt(2.0 - 2.0 * scores.max(axis=1)) > usual)
    assert 0.0 < expected < 1.0
    assert far_queries(documents, queries) == pytest.approx(expected)


def test_one_document_in_a_hundred_is_far_from_others_of_its_space() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((6_000, 6))
    share = far_queries(rows[:3_000], rows[3_000:])
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], 3_000, 0.01) / 3_000
    assert low - 0.003 <= share <= high + 0.003


def test_what_queries_find(documents: np.ndarray, queries: np.ndarray, scores: np.ndarray) -> None:
    order = np.argsort(-scores, axis=1)[:, :K]
    times = np.bincount(order.ravel(), minlength=len(documents))
    assert query_hubness(documents, queries) == pytest.approx(stats.skew(times), rel=1e-12)
    assert never_returned(documents, queries) == pytest.approx(np.mean(times == 0))
    ranked = -np.sort(-scores, axis=1)
    assert query_margin(documents, queries) == pytest.approx(np.mean(ranked[:, 0] - ranked[:, K - 1]), rel=1e-10)


def test_a_document_in_the_direction_of_all_queries_is_found_by_all(documents: np.ndarray) -> None:
    direction = np.zeros(12)
    direction[0] = 1.0
    asked = direction + 0.05 * np.random.default_rng(3).standard_normal((80, 12))
    more = np.concatenate([documents, direction[None]])
    assert query_hubness(more, asked) > 5.0
    assert never_returned(more, asked) > 0.8


def test_copies_of_a_document_count_once(documents: np.ndarray, queries: np.ndarray) -> None:
    copies = np.concatenate([documents, np.repeat(documents[:1], 30, axis=0) * 3.0])
    for measure in (query_hubness, never_returned, query_margin, far_queries):
        assert measure(copies, queries) == pytest.approx(measure(documents, queries), rel=1e-12)


def test_few_documents_give_no_lists(documents: np.ndarray, queries: np.ndarray) -> None:
    assert math.isnan(never_returned(documents[:11], queries))
    assert math.isfinite(never_returned(documents[:12], queries))
