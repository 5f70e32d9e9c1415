"""Exact search against sorting by hand, and scores of rankings against trec_eval's own code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from numpy.testing import assert_allclose, assert_array_equal

from isotrope.errors import InputError
from isotrope.evaluation import ranking as module
from isotrope.evaluation.ranking import NOTHING, score_rankings, search


def nearest(queries: np.ndarray, rows: np.ndarray, ids: list[str], k: int, own: np.ndarray) -> list[list[int]]:
    """The same by Python's own sorting."""
    found = []
    for query, mine in zip(queries.astype(float), own, strict=True):
        keyed = []
        for number, row in enumerate(rows.astype(float)):
            cosine = float(query @ row / math.sqrt(query @ query) / math.sqrt(row @ row))
            if number != mine:
                keyed.append((round(cosine, 9), ids[number], number))
        best = [number for *_, number in sorted(keyed, reverse=True)[:k]]
        found.append(best + [NOTHING] * (k - len(best)))
    return found


@pytest.mark.parametrize(("documents", "k"), [(7, 100), (60, 10), (500, 100)])
def test_search_is_sorting_however_the_rows_are_cut(documents: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(documents)
    rows = rng.normal(size=(documents, 6)).astype(np.float32)
    rows[rng.integers(0, documents, documents // 3)] = rows[0]  # ties, which the greater id wins
    ids = [str(number) for number in rng.permutation(documents)]
    queries = rng.normal(size=(20, 6)).astype(np.float32)
    own = rng.integers(NOTHING, documents, 20)
    expected = nearest(queries, rows, ids, k, own)
    assert_array_equal(search(queries, [rows], ids, k, own).documents, expected)
    monkeypatch.setattr(module, "_QUERIES", 3)
    monkeypatch.setattr(module, "_DOCUMENTS", 11)
    assert_array_equal(search(queries, iter(np.array_split(rows, 4)), ids, k, own).documents, expected)


def test_cosines_that_float32_cannot_tell_apart_are_told_apart() -> None:
    """A collapsed space: all cosines are the same but for the ninth digit."""
    rows = np.ones((40, 2))
    rows[:, 1] += 1e-6 * np.random.default_rng(0).permutation(40) / 40
    query = np.array([1.0, 1.1])
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    assert len(set(cosines.astype(np.float32))) == 1
    found = search(query[None], [rows], [f"{number:02}" for number in range(40)], 10, np.array([NOTHING]))
    assert found.documents[0].tolist() == np.argsort(-rows[:, 1])[:10].tolist()


def test_rows_that_are_not_numbers_are_never_found_and_find_nothing() -> None:
    rows = np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 0.0], [-1.0, 0.0]])
    found = search(np.array([[1.0, 0.0], [np.nan, 0.0]]), [rows], list("abcd"), 5, np.full(2, NOTHING))
    assert found.documents.tolist() == [[0, 2, 3, NOTHING, NOTHING], [NOTHING] * 5]


def test_rows_must_be_as_many_as_documents() -> None:
    with pytest.raises(InputError, match="got 3 rows of 2 documents"):
        search(np.ones((1, 2)), [np.ones((3, 2))], ["a", "b"], 1, np.array([NOTHING]))


def test_scores_by_hand() -> None:
    """A first relevant document at rank 2, one of grade 3 at rank 11, one not found, and one judged not relevant."""
    found = np.full((2, 100), 1000) + np.arange(100)
    found[0, [0, 1, 10]] = [4, 7, 9]
    scores = score_rankings(found, [{4: 0, 7: 1, 9: 3, 8: 2}, {5: 1}])
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert_allclose(scores["ndcg_at_10"], [1 / math.log2(3) / ideal, 0])
    assert_allclose(scores["recall_at_10"], [1 / 3, 0])
    assert_allclose(scores["recall_at_100"], [2 / 3, 0])
    assert_allclose(scores["mrr_at_10"], [1 / 2, 0])


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_those_of_trec_eval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    documents, queries = int(rng.integers(5, 300)), 30
    rows = rng.normal(size=(documents, 8))
    rows[rng.integers(0, documents, documents // 5)] = rows[0]
    ids = [f"d{number}" for number in rng.permutation(documents)]
    judged = [
        {int(number): int(rng.integers(-1, 4)) for number in rng.permutation(documents)[: rng.integers(1, 40)]}
        for _ in range(queries)
    ]
    towards = rng.normal(size=(queries, 8))
    found = score_rankings(search(towards, [rows], ids, 100, np.full(queries, NOTHING)).documents, judged)

    cosines = towards @ rows.T / np.linalg.norm(rows, axis=1) / np.linalg.norm(towards, axis=1, keepdims=True)
    rounded = cosines.round(6)  # trec_eval compares float32
    run = {str(q): {ids[d]: float(rounded[q, d]) for d in range(documents)} for q in range(queries)}
    ten = {q: dict(sorted(s.items(), key=lambda item: item[::-1], reverse=True)[:10]) for q, s in run.items()}
    judgements = {str(q): {ids[d]: relevance for d, relevance in known.items()} for q, known in enumerate(judged)}
    whole = pytrec_eval.RelevanceEvaluator(judgements, {"ndcg_cut.10", "recall.10,100"}).evaluate(run)
    first = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(ten)
    for name, theirs, source in [
        ("ndcg_at_10", "ndcg_cut_10", whole),
        ("recall_at_10", "recall_10", whole),
        ("recall_at_100", "recall_100", whole),
        ("mrr_at_10", "recip_rank", first),
    ]:
        assert_allclose(found[name], [source[str(q)][theirs] for q in range(queries)], atol=1e-12)
