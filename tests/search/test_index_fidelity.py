"""Evaluation of an index: what is read, scored, compared, recommended and refused."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("faiss")

import isotrope
from isotrope.errors import InputError, MissingExtra
from isotrope.search import index_data, index_trials
from isotrope.search.index_data import select_rows
from isotrope.search.index_fidelity import evaluate_index
from isotrope.search.index_result import IndexEvaluation, IndexScore, recommend
from isotrope.search.index_settings import FAMILIES

RNG = np.random.default_rng(0)
D = 16
DOCUMENTS = (RNG.normal(size=(400, D)) + 2).astype(np.float32)
ASKED = RNG.permutation(400)[:60]
QUERIES = (DOCUMENTS[ASKED] + 0.5 * RNG.normal(size=(60, D))).astype(np.float32)
QRELS = {str(q): {str(row): 2, str((row + 7) % 400): 1} for q, row in enumerate(ASKED)}

#: Families that are quick to build.
FAST = tuple(family for family in FAMILIES if family.name in ("float32", "int8", "binary", "truncation"))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_trials, "FAMILIES", FAST)


def by_setting(found: IndexEvaluation, repair: str = "none") -> dict[str, IndexScore]:
    return {score.setting: score for score in found.scores if score.repair == repair}


def find_nearest(rows: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (rows.astype(float), queries.astype(float))]
    return np.argsort(-(unit[1] @ unit[0].T), axis=1)[:, :k]


def test_all_families_with_queries_and_judgements() -> None:
    found = isotrope.evaluate_index(DOCUMENTS, queries=QUERIES, qrels=QRELS, repairs=["centering"])
    raw, centred = by_setting(found), by_setting(found, "centering")
    assert raw.keys() == centred.keys()
    assert {score.family for score in found.scores} == {family.name for family in FAMILIES}
    for scores in (raw, centred):
        exact = scores["float32"]
        assert (exact.recall, exact.low, exact.high, exact.speed) == (1, 1, 1, 1)
    assert found.documents == 400
    assert all(score.n == 60 for score in found.scores)
    # nDCG of exact search is the one of the evaluation of retrieval.
    expected = isotrope.evaluate_retrieval(documents=DOCUMENTS, queries=QUERIES, qrels=QRELS, repairs=["centering"])
    for score, exact in zip(expected.scores, (raw["float32"], centred["float32"]), strict=True):
        assert_allclose(exact.ndcg_at_10, score.ndcg_at_10, atol=1e-4)
    # Against exact search on the vectors as they are, by plain numpy.
    mean = DOCUMENTS.astype(float).mean(axis=0)
    before, after = find_nearest(DOCUMENTS, QUERIES, 10), find_nearest(DOCUMENTS - mean, QUERIES - mean, 10)
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(before.tolist(), after.tolist(), strict=True)])
    assert_allclose(centred["float32"].recall_of_raw, shared)
    # On a narrow cone all sign codes are alike; centering sets them apart.
    change = next(d for d in found.differences if (d.set, d.metric) == ("binary", "recall"))
    assert centred["binary"].recall > raw["binary"].recall + 0.1
    assert_allclose(change.difference, 100 * (centred["binary"].recall - raw["binary"].recall))
    assert change.significant
    assert {d.metric for d in found.differences} == {"recall", "ndcg_at_10"}
    document = json.loads(found.to_json())
    assert document["provenance"]["settings"]["threads"] == 1
    assert document["recommendation"]["setting"] == found.recommendation.setting  # type: ignore[union-attr]
    assert len(found.to_frame()) == len(found.scores)


def test_recall_and_its_interval_are_those_of_numpy(few: None) -> None:
    found = by_setting(evaluate_index(DOCUMENTS, queries=QUERIES, repairs=[], k=5))
    exact = find_nearest(DOCUMENTS, QUERIES, 5)
    first = find_nearest(DOCUMENTS[:, :8], QUERIES[:, :8], 5)
    recall = np.array([len(set(a) & set(b)) / 5 for a, b in zip(exact.tolist(), first.tolist(), strict=True)])
    score = found["first 8 dimensions"]
    assert_allclose(score.recall, recall.mean())
    half = 1.96 * recall.std(ddof=1) / math.sqrt(60)
    assert_allclose([score.low, score.high], [recall.mean() - half, recall.mean() + half], atol=0.25 * half)
    assert math.isnan(score.ndcg_at_10)


def test_without_queries_some_vectors_are_held_out(few: None) -> None:
    found = evaluate_index(DOCUMENTS, repairs=[])
    assert found.documents == 320
    assert found.scores[0].n == 80
    assert found.notes == ["the queries are 80 of the vectors, drawn at random and left out of the index"]
    again = evaluate_index(DOCUMENTS, repairs=[])
    assert [score.recall for score in again.scores] == [score.recall for score in found.scores]
    other = evaluate_index(DOCUMENTS, repairs=[], seed=1)
    assert [score.recall for score in other.scores] != [score.recall for score in found.scores]


def test_bad_rows_are_left_out_and_told(few: None) -> None:
    rows, asked = DOCUMENTS.copy(), QUERIES.copy()
    rows[3] = 0
    rows[5, 2] = np.nan
    asked[1, 1] = np.inf
    qrels = QRELS | {"0": {"3": 1, "5": 1, str(ASKED[0]): 1}}
    found = evaluate_index(rows, queries=asked, qrels=qrels, repairs=["centering"])
    assert found.documents == 398
    assert found.scores[0].n == 59
    assert found.notes == [
        "2 vectors are zero or not finite and are left out",
        "1 queries are zero or not finite and are left out",
    ]
    # Documents that are left out count as not found: row numbers have moved, judgements have not.
    kept = [i for i in range(400) if i not in (3, 5)]
    nearest = np.array(kept)[find_nearest(rows[kept], asked[[0, *range(2, 60)]], 10)]
    scores = []
    for query, row in zip([0, *range(2, 60)], nearest, strict=True):
        judged = qrels[str(query)]
        ideal = sum(g / np.log2(i + 2) for i, g in enumerate(sorted(judged.values(), reverse=True)))
        scores.append(sum(judged.get(str(one), 0) / np.log2(i + 2) for i, one in enumerate(row)) / ideal)
    assert_allclose(found.scores[0].ndcg_at_10, 100 * np.mean(scores), atol=1e-4)


def test_samples_are_told_and_keep_judged_documents(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_data, "MOST_QUERIES", 50)
    found = evaluate_index(DOCUMENTS, queries=QUERIES, qrels=QRELS, repairs=[], sample=200)
    assert found.documents == 200
    assert found.notes == ["200 of 400 vectors were sampled", "50 of 60 queries were sampled"]
    judged = {int(row) for documents in QRELS.values() for row in documents}
    assert judged <= set(select_rows(400, 200, sorted(judged), np.random.default_rng(0)).tolist())


def test_a_query_does_not_count_the_document_of_its_own_id(few: None) -> None:
    ids = [f"d{i}" for i in range(400)]
    qrels = {f"d{row}": {f"d{(row + 7) % 400}": 1} for row in ASKED}
    names = {"id_column": ids, "query_id_column": [f"d{row}" for row in ASKED]}
    found = evaluate_index(DOCUMENTS, queries=QUERIES, qrels=qrels, repairs=[], **names)
    expected = isotrope.evaluate_retrieval(documents=DOCUMENTS, queries=QUERIES, qrels=qrels, **names)
    assert_allclose(found.scores[0].ndcg_at_10, expected.scores[0].ndcg_at_10, atol=1e-4)


SCORE = IndexScore("none", "int8", "int8", 0.97, 0.96, 0.98, 0.97, math.nan, 384.0, 0.0, 1e3, 1.5, 100)


def test_the_cheapest_setting_that_surely_reaches_the_recall_is_recommended() -> None:
    exact = replace(SCORE, family="float32", setting="float32", low=1.0, bytes=1.0)
    unsure = replace(SCORE, setting="unsure", low=0.949, bytes=10.0)
    fast = replace(SCORE, setting="fast", speed=2.0)
    large = replace(SCORE, setting="large", bytes=385.0, speed=99.0)
    repaired = replace(SCORE, setting="repaired", repair="centering", speed=5.0)
    broken = replace(SCORE, setting="broken", low=math.nan, bytes=math.nan, reason="no")
    everything = [exact, unsure, SCORE, fast, large, repaired, broken]
    best = recommend(everything, 0.95)
    assert best is not None
    assert best.setting == "fast"
    assert "384 bytes per vector" in best.words
    as_fast = replace(fast, setting="as fast", speed=2.01)
    closer = replace(fast, setting="closer", speed=1.98, recall=0.98)
    assert recommend([*everything, as_fast, closer], 0.95) == recommend([closer], 0.95)
    smaller = recommend([*everything, replace(repaired, bytes=48.0, rescoring_bytes=1536.0)], 0.95)
    assert smaller is not None
    assert (smaller.repair, smaller.bytes) == ("centering", 48.0)
    assert "48 bytes per vector in memory and 1,536 on disk" in smaller.words
    assert "without the repair" in smaller.words
    assert recommend(everything, 0.99) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"queries": QUERIES[:, :5]}, "the queries have 5 columns and the documents 16"),
        ({"recall": 0.0}, "wanted recall 0,"),
        ({"recall": 1.5}, "wanted recall 1.5,"),
        ({"recall": math.nan}, "wanted recall nan"),
        ({"k": 0}, "got k 0"),
        ({"sample": 10}, "sample of 10 vectors"),
        ({"repairs": ["centring"]}, "no repair 'centring'"),
        ({"qrels": QRELS}, "--qrels without --queries"),
        ({"queries": QUERIES, "qrels": {"0": {"400": 1}}}, "documents that the array does not have"),
        ({"vectors": DOCUMENTS[:10]}, "8 usable vectors and 2 queries"),
        ({"vectors": np.full((50, 4), np.nan)}, "0 usable vectors"),
        ({"repairs": [isotrope.Centering().fit(DOCUMENTS[:, :4])]}, "rows of width 4"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate_index(**{"vectors": DOCUMENTS} | changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_rows_for_product_quantization_leave_the_other_settings() -> None:
    found = evaluate_index(DOCUMENTS[:200], repairs=[])
    without = {score.family for score in found.scores if score.reason is not None}
    assert without == {"pq"}
    assert json.loads(found.to_json())["scores"][8]["recall"] is None


def test_a_missing_faiss_names_its_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[quantize\]'"):
        evaluate_index(DOCUMENTS)
