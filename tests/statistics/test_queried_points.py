"""Queries and documents: a value with `+`, and groups of queries that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError, MergeError
from isotrope.statistics import QueriedPoints


@pytest.fixture
def pair() -> QueriedPoints:
    rng = np.random.default_rng(0)
    made = QueriedPoints.of(rng.standard_normal((60, 5)), rng.standard_normal((30, 5)))
    made.queries.group[:] = np.arange(30) % 4
    return made


def test_results_are_the_documents_of_largest_cosine(pair: QueriedPoints) -> None:
    scores = pair.queries.unit.rows @ pair.documents.unit.rows.T
    order = np.argsort(-scores, axis=1)[:, :10]
    np.testing.assert_array_equal(pair.results.which, order)
    np.testing.assert_allclose(pair.results.distance, np.sqrt(2 - 2 * np.take_along_axis(scores, order, 1)), rtol=1e-9)


def test_a_group_of_queries_is_left_out_and_no_document(pair: QueriedPoints) -> None:
    rest = pair.leave_out(2)
    assert (rest.n, rest.documents.n) == (int(np.sum(np.arange(30) % 4 != 2)), 60)
    fresh = QueriedPoints.of(pair.documents.rows, rest.queries.rows)
    np.testing.assert_array_equal(rest.results.which, fresh.results.which)
    np.testing.assert_allclose(rest.results.distance, fresh.results.distance, rtol=1e-12)


def test_merging_is_commutative_and_associative_with_an_empty_element(pair: QueriedPoints) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (QueriedPoints.of(rng.standard_normal((n, 5)), rng.standard_normal((n // 2, 5))) for n in (20, 30, 12))
    for points, one in enumerate((a, b, c)):  # row ids of their own, as in one source
        one.documents.sequence[:] += np.uint64(1000 * points)
        one.queries.sequence[:] += np.uint64(1000 * points)
    for left, right in ((a + b, b + a), ((a + b) + c, a + (b + c)), (a + QueriedPoints.empty(5), a)):
        np.testing.assert_array_equal(left.documents.rows, right.documents.rows)
        np.testing.assert_array_equal(left.queries.rows, right.queries.rows)


def test_what_does_not_fit_is_refused(pair: QueriedPoints) -> None:
    with pytest.raises(MergeError, match="width 4 and 5"):
        pair + QueriedPoints.empty(4)
    with pytest.raises(
        InputError, match="the documents have 5 dimensions and the queries 3; give vectors of one model"
    ):
        QueriedPoints.of(np.eye(5), np.eye(3))


def test_fewer_documents_than_places_are_found_but_one() -> None:
    rng = np.random.default_rng(2)
    documents, queries = rng.standard_normal((4, 3)), rng.standard_normal((6, 3))
    scores = (queries / np.linalg.norm(queries, axis=1)[:, None]) @ (documents.T / np.linalg.norm(documents, axis=1))
    found = QueriedPoints.of(documents, queries).results
    np.testing.assert_array_equal(found.which, np.argsort(-scores, axis=1)[:, :3])
