"""Retrieval from vectors: the same scores as plain numpy and as trec_eval finds in the run files, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from numpy.testing import assert_allclose

from isotrope.errors import InputError, StoreError
from isotrope.evaluation.result import RetrievalEvaluation
from isotrope.evaluation.retrieval import evaluate_retrieval

SCORES = ("ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_10")
N, Q, D = 230, 40, 12
RNG = np.random.default_rng(5)
DOCUMENTS = (RNG.normal(size=(N, D)) + 2).astype(np.float32)
DOCUMENTS[100:120] = DOCUMENTS[:20]  # ties
QUERIES = (DOCUMENTS[RNG.permutation(N)[:Q]] + RNG.normal(size=(Q, D))).astype(np.float32)
DOCUMENT_IDS = [f"d{number}" for number in RNG.permutation(N)]
QUERY_IDS = [f"q{number}" for number in range(Q)]
QRELS = {
    name: {DOCUMENT_IDS[i]: int(RNG.integers(0, 4)) for i in RNG.permutation(N)[:25]} for name in QUERY_IDS[: Q - 3]
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Vectors, ids and judgements in every form."""
    np.save(tmp_path / "documents.npy", DOCUMENTS)
    np.save(tmp_path / "queries.npy", QUERIES)
    for name, rows, ids in (("documents", DOCUMENTS, DOCUMENT_IDS), ("queries", QUERIES, QUERY_IDS)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{one}\n" for one in ids))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"_id": one, "text": "x"}) + "\n" for one in ids))
        pd.DataFrame({"_id": ids, "vector": list(rows)}).to_parquet(tmp_path / f"{name}.parquet")
        pd.DataFrame({"key": ids, "vector": list(rows)}).to_parquet(tmp_path / f"{name}_key.parquet")
    lines = [f"{query}\t{name}\t{grade}" for query, judged in QRELS.items() for name, grade in judged.items()]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    trec = [f"{query} 0 {name} {grade}" for query, judged in QRELS.items() for name, grade in judged.items()]
    (tmp_path / "qrels.trec").write_text("\n".join(trec))
    return tmp_path


def find_scores(found: RetrievalEvaluation) -> list[list[float]]:
    return [[getattr(score, name) for name in SCORES] for score in found.scores]


def evaluate(**changes: Any) -> RetrievalEvaluation:
    given = {"documents": DOCUMENTS, "queries": QUERIES, "qrels": QRELS}
    given |= {"id_column": DOCUMENT_IDS, "query_id_column": QUERY_IDS}
    return evaluate_retrieval(**given | changes)


def compute_ndcg(documents: np.ndarray, queries: np.ndarray) -> list[float]:
    """nDCG@10 by plain numpy: ties by the greater id."""
    found = []
    for query, judged in QRELS.items():
        row = queries[QUERY_IDS.index(query)].astype(float)
        cosines = documents.astype(float) @ row / np.linalg.norm(documents.astype(float), axis=1) / np.linalg.norm(row)
        order = sorted(range(N), key=lambda i: (round(float(cosines[i]), 9), DOCUMENT_IDS[i]), reverse=True)[:10]
        gains = [judged.get(DOCUMENT_IDS[i], 0) for i in order]
        ideal = sorted(judged.values(), reverse=True)[:10]
        found.append(sum(g / np.log2(r + 2) for r, g in enumerate(gains)))
        found[-1] /= sum(g / np.log2(r + 2) for r, g in enumerate(ideal))
    return found


def test_scores_are_those_of_plain_numpy_without_and_with_a_repair() -> None:
    found = evaluate(repairs=["centering"])
    by_query = found.by_query
    assert_allclose(by_query["none"]["ndcg_at_10"], compute_ndcg(DOCUMENTS, QUERIES), atol=1e-9)
    mean = DOCUMENTS.astype(float).mean(axis=0)
    expected = compute_ndcg(DOCUMENTS - mean, QUERIES - mean)
    assert_allclose(by_query["centering"]["ndcg_at_10"], expected, atol=1e-6)
    assert_allclose(found.scores[1].ndcg_at_10, 100 * np.mean(expected), atol=1e-4)
    assert list(found.queries) == list(QRELS)  # queries without judgements are left out
    assert [(s.model, s.layers, s.pooling, s.fitted_on) for s in found.scores] == [
        ("the array", None, None, None),
        ("the array", None, None, "own"),
    ]
    assert len(found.differences) == len(SCORES)


def test_every_form_of_input_gives_the_same(files: Path) -> None:
    expected = find_scores(evaluate())
    of = lambda ending: {name: files / f"{name}{ending}" for name in ("documents", "queries")}  # noqa: E731
    ids = lambda ending: {"id_column": files / f"documents{ending}", "query_id_column": files / f"queries{ending}"}  # noqa: E731
    for given in (
        of(".npy") | ids(".txt"),
        of(".npy") | ids(".jsonl"),
        of(".parquet") | {"id_column": None, "query_id_column": None},
        of("_key.parquet") | {"id_column": "key", "query_id_column": None},
        of("_key.parquet") | ids(".txt"),
    ):
        for qrels in ("qrels.tsv", "qrels.trec"):
            assert find_scores(evaluate(**given, qrels=files / qrels)) == expected


def test_without_ids_rows_have_their_numbers_and_a_query_may_find_the_row_of_its_number() -> None:
    rows = np.eye(4, dtype=np.float32)
    found = evaluate_retrieval(documents=rows, queries=rows, qrels={str(i): {str(i): 1} for i in range(4)})
    assert found.scores[0].mrr_at_10 == 100
    named = evaluate_retrieval(
        documents=rows,
        queries=rows,
        qrels={str(i): {str(i): 1} for i in range(4)},
        id_column=range(4),
        query_id_column=range(4),
    )
    assert named.scores[0].mrr_at_10 == 0  # as in BEIR, the document with the id of the query is left out
    assert named.notes == ["4 relevant documents have the id of their query and are never found, as in BEIR"]


def read_run(path: Path) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        query, zero, document, rank, score, tag = line.split()
        assert (zero, tag) == ("Q0", f"isotrope-{path.stem}")
        run.setdefault(query, {})[document] = float(score)
        assert int(rank) == len(run[query])
    return run


@pytest.mark.parametrize("spread", [1.0, 1e-4])
def test_trec_eval_finds_the_same_scores_in_the_run_files(tmp_path: Path, spread: float) -> None:
    """With a spread of 1e-4 all cosines are above 0.9999999, where float32 cannot tell most of them apart."""
    mean = np.full(D, 2.0)
    rows = {"documents": mean + spread * (DOCUMENTS - mean), "queries": mean + spread * (QUERIES - mean)}
    found = evaluate(**rows, repairs=["centering", "whitening:strength=0.5"], run_files=tmp_path / "runs")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        "none.run",
        "centering.run",
        "whitening-strength=0.5.run",
    }
    for repair, name in (("none", "none"), ("centering", "centering"), ("whitening:strength=0.5",) * 2):
        run = read_run(tmp_path / "runs" / f"{name.replace(':', '-')}.run")
        assert {len(documents) for documents in run.values()} == {100}
        theirs = pytrec_eval.RelevanceEvaluator(QRELS, {"ndcg_cut.10", "recall.10,100"}).evaluate(run)
        for ours, measure in (
            ("ndcg_at_10", "ndcg_cut_10"),
            ("recall_at_10", "recall_10"),
            ("recall_at_100", "recall_100"),
        ):
            expected = [theirs[query][measure] for query in QRELS]
            assert_allclose(found.by_query[repair][ours], expected, atol=1e-6)


def test_ir_measures_finds_the_same_scores_in_the_run_files(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    found = evaluate(run_files=tmp_path / "runs")
    run = ir_measures.read_trec_run(str(tmp_path / "runs" / "none.run"))
    measures = [ir_measures.nDCG @ 10, ir_measures.R @ 10, ir_measures.R @ 100, ir_measures.RR @ 10]
    theirs = ir_measures.calc_aggregate(measures, QRELS, run)
    assert_allclose(find_scores(found)[0], [100 * theirs[measure] for measure in measures], atol=1e-4)


BAD: list[tuple[Callable[[], dict[str, Any]], list[str]]] = [
    (lambda: {"queries": QUERIES[:, :7]}, ["queries have 7 columns", "documents 12"]),
    (lambda: {"id_column": DOCUMENT_IDS[:-1]}, ["229 ids", "230 rows"]),
    (lambda: {"id_column": ["d1"] * 2 + DOCUMENT_IDS[2:]}, ["repeat", "'d1'"]),
    (lambda: {"query_id_column": [None, *QUERY_IDS[1:]]}, ["row 0", "has no id"]),
    (lambda: {"qrels": {"q1": {"a": 1, "b": 1, "c": 1, "e": 1}}}, ["4 of 4 judgements", "'a', 'b', 'c')", "documents"]),
    (lambda: {"qrels": {"x": {DOCUMENT_IDS[0]: 1}}}, ["1 of 1 judgements", "queries", "'x'"]),
    (lambda: {"qrels": {}}, ["no document relevant"]),
    (lambda: {"qrels": {"q1": {DOCUMENT_IDS[0]: 0}}}, ["no document relevant"]),
    (lambda: {"qrels": "nosuch.tsv"}, ["nosuch.tsv"]),
    (lambda: {"qrels": None}, ["--documents without --qrels"]),
    (lambda: {"queries": "nosuch.npy"}, ["nosuch.npy"]),
    (lambda: {"id_column": "nosuch.txt"}, ["nosuch.txt"]),
    (lambda: {"id_column": "key"}, ["no column 'key'"]),
    (lambda: {"model": "some-model"}, ["vectors take no model"]),
    (lambda: {"pooling": "cls"}, ["no use for pooling"]),
    (lambda: {"fit_text": "a.txt"}, ["no use for --fit-text"]),
    (lambda: {"query_prompt": "query: "}, ["no use for --query-prompt"]),
    (lambda: {"data": "folder"}, ["--data and also --documents"]),
    (lambda: {"documents": None, "queries": None, "qrels": None}, ["got no set"]),
    (lambda: {"engine": "ray"}, ["no use for --engine"]),
    (lambda: {"repairs": ["centring"]}, ["centring"]),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_what_cannot_be_used_is_one_sentence(changes: Callable[[], dict[str, Any]], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(**changes())
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, sentence
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence


def test_run_files_are_never_written_over_and_need_ids_without_blanks(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="never written over"):
        evaluate(run_files=tmp_path)
    blank = [f"a {name}" for name in DOCUMENT_IDS]
    qrels = {query: {f"a {name}": grade for name, grade in judged.items()} for query, judged in QRELS.items()}
    with pytest.raises(InputError, match="230 ids contain blanks"):
        evaluate(id_column=blank, qrels=qrels, run_files=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_rows_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    rows = DOCUMENTS.copy()
    rows[3, 1] = np.nan
    found = evaluate(documents=rows, run_files=tmp_path / "runs")
    assert found.notes == ["the rows of 1 documents hold NaN or infinity and take no part in any search"]
    assert all(DOCUMENT_IDS[3] not in found for found in read_run(tmp_path / "runs" / "none.run").values())
