"""Retrieval on topics of the Python manual by a real model, against sentence-transformers' own evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

from isotrope.errors import InputError
from isotrope.evaluation import retrieval as module
from isotrope.evaluation.result import RetrievalEvaluation
from isotrope.evaluation.retrieval import evaluate_retrieval
from isotrope.integrations.sentence_transformers import insert_repair
from isotrope.repairs import Repair, SoftDecay, Whitening
from isotrope.sources.input import Input
from isotrope.sources.models.location import find_embedded_folder
from isotrope.sources.text.encoder import Encoder

#: Tokens at which texts are cut: most documents are longer.
LENGTH = 24

#: The same as `repair`, fitted by isotrope.
NAME = "whitening:dimensions=24"

SCORES = {
    "ndcg_at_10": "cosine_ndcg@10",
    "recall_at_10": "cosine_recall@10",
    "recall_at_100": "cosine_recall@100",
    "mrr_at_10": "cosine_mrr@10",
}

DOCUMENTS: dict[str, str] = {}
QUERIES: dict[str, str] = {}
for _name, _text in sorted(topics.items()):
    _first, *_rest = [" ".join(line.split()) for line in _text.splitlines() if line.strip("*=-~^ ")]
    if len(_rest) > 3 and " ".join(_rest) not in DOCUMENTS.values():
        DOCUMENTS[_name] = " ".join(_rest)
        QUERIES[f"about {_name}"] = _first

#: The text of a topic answers its first line, and so does that of every topic with the same first line.
RELEVANT = {
    query: {name for name in DOCUMENTS if QUERIES[f"about {name}"] == first} for query, first in QUERIES.items()
}


def write_set(folder: Path, relevant: dict[str, set[str]] = RELEVANT) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus))
    queries = [json.dumps({"_id": name, "text": text}) for name, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(queries))
    judged = [f"{query}\t{name}\t1" for query, names in relevant.items() for name in sorted(names)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("beir") / "manual")


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    loaded = SentenceTransformer(find_embedded_folder(), device="cpu")
    loaded.max_seq_length = LENGTH
    return loaded


@pytest.fixture(scope="module")
def repair(model: SentenceTransformer) -> Repair:
    """Whitening fitted on the documents by sentence-transformers."""
    inner = SentenceTransformer(modules=[model[0], model[1]], device="cpu")
    return Whitening(24).fit(inner.encode(list(DOCUMENTS.values())))


def by_sentence_transformers(model: SentenceTransformer, **prompts: str) -> dict[str, float]:
    evaluator = InformationRetrievalEvaluator(
        QUERIES, DOCUMENTS, RELEVANT, precision_recall_at_k=[10, 100], write_csv=False, **prompts
    )
    found = evaluator(model)
    return {ours: 100 * float(found[theirs]) for ours, theirs in SCORES.items()}


def scores(found: RetrievalEvaluation) -> dict[str, dict[str, float]]:
    return {score.repair: {name: getattr(score, name) for name in SCORES} for score in found.scores}


@pytest.fixture(scope="module")
def found(folder: Path, repair: Repair) -> RetrievalEvaluation:
    return evaluate_retrieval(data=folder, repairs=[NAME, repair], max_length=LENGTH)


def test_scores_are_those_of_sentence_transformers(
    found: RetrievalEvaluation, model: SentenceTransformer, repair: Repair
) -> None:
    raw, bent = by_sentence_transformers(model), by_sentence_transformers(insert_repair(model, repair))
    assert 20 < raw["ndcg_at_10"] < 95
    assert abs(raw["ndcg_at_10"] - bent["ndcg_at_10"]) > 0.1
    by_repair = scores(found)
    assert_allclose(list(by_repair["none"].values()), list(raw.values()), atol=1e-4)  # per cent: 1e-6 of 1
    assert_allclose(list(by_repair[repr(repair)].values()), list(bent.values()), atol=1e-4)
    assert_allclose(list(by_repair[NAME].values()), list(bent.values()), atol=1e-4)  # fitted on documents alone


def test_scores_name_what_they_are_of(found: RetrievalEvaluation) -> None:
    document = json.loads(found.to_json())
    first, second, third = document["scores"]
    assert first["set"] == "manual"
    assert (first["model"], first["layers"], first["pooling"]) == ("all-MiniLM-L6-v2", "-1", "mean")
    assert [score["fitted_on"] for score in (first, second, third)] == [None, "own", "as saved"]
    assert first["n"] == len(QUERIES)
    assert first["low"] < first["ndcg_at_10"] < first["high"]
    assert document["documents"] == len(DOCUMENTS)
    assert document["notes"] == []
    frame = found.to_frame("queries")
    assert len(frame) == 3 * len(QUERIES)
    means = 100 * frame.groupby("repair")["ndcg_at_10"].mean()
    for score in found.scores:
        assert_allclose(means[score.repair], score.ndcg_at_10)


def test_vectors_score_as_the_texts_that_they_are_of(found: RetrievalEvaluation, folder: Path) -> None:
    encoder = Encoder(Input(max_length=LENGTH))
    names = {"id_column": list(DOCUMENTS), "query_id_column": list(QUERIES)}
    rows = {"documents": encoder(list(DOCUMENTS.values())), "queries": encoder(list(QUERIES.values()))}
    again = evaluate_retrieval(**rows, **names, qrels=folder / "qrels" / "test.tsv", repairs=[NAME])
    for score in again.scores:
        assert_allclose(
            list(scores(again)[score.repair].values()), list(scores(found)[score.repair].values()), atol=1e-9
        )
    frames = [one.to_frame("queries").query("repair == 'none'").reset_index(drop=True) for one in (again, found)]
    assert frames[0].equals(frames[1])


def test_differences_are_paired_and_corrected(found: RetrievalEvaluation) -> None:
    by_repair = scores(found)
    assert len(found.differences) == 2 * len(SCORES)
    for difference in found.differences:
        plain = by_repair[difference.repair][difference.metric] - by_repair["none"][difference.metric]
        assert_allclose(difference.difference, plain, atol=1e-9)
        assert difference.low <= difference.difference <= difference.high
        assert difference.p <= difference.p_corrected <= 1
    main = next(d for d in found.differences if d.metric == "ndcg_at_10")
    # Pairs tell more than two means that are known each on its own.
    assert main.high - main.low < found.scores[0].high - found.scores[0].low


def test_documents_in_small_parts_give_the_same(
    folder: Path, found: RetrievalEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 17)
    told: list[tuple[str, float, int | None]] = []
    again = evaluate_retrieval(data=folder, repairs=[NAME], max_length=LENGTH, progress=lambda *what: told.append(what))
    for name, values in scores(again).items():
        assert_allclose(list(values.values()), list(scores(found)[name].values()), atol=1e-4)
    done = [done for what, done, total in told if what == "encoding documents"]
    assert done == sorted(done)
    assert done[-1] == len(DOCUMENTS)


def test_prompts_and_other_text_to_fit_on(folder: Path, model: SentenceTransformer, tmp_path: Path) -> None:
    asked, written = "query about the weather: ", "passage: "
    (tmp_path / "other.txt").write_text("\n".join(QUERIES.values()))
    found = evaluate_retrieval(
        data=folder,
        repairs=["softdecay"],
        fit_text=tmp_path / "other.txt",
        query_prompt=asked,
        document_prompt=written,
        max_length=LENGTH,
    )
    raw = by_sentence_transformers(model, query_prompt=asked, corpus_prompt=written)
    assert_allclose(list(scores(found)["none"].values()), list(raw.values()), atol=1e-4)
    inner = SentenceTransformer(modules=[model[0], model[1]], device="cpu")
    bent = SoftDecay().fit(inner.encode([written + text for text in QUERIES.values()]))
    expected = by_sentence_transformers(insert_repair(model, bent), query_prompt=asked, corpus_prompt=written)
    assert_allclose(list(scores(found)["softdecay"].values()), list(expected.values()), atol=1e-4)
    assert found.scores[1].fitted_on == str(tmp_path / "other.txt")


def test_a_query_never_finds_the_document_of_its_own_id(tmp_path: Path) -> None:
    """Each document asks for its twin; without the rule it would find itself first."""
    texts = {"a1": "The cat sleeps.", "a2": "A cat is asleep.", "b1": "Stocks fell.", "b2": "Shares dropped."}
    lines = "\n".join(json.dumps({"_id": name, "text": text}) for name, text in texts.items())
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(lines)
    (tmp_path / "queries.jsonl").write_text(lines)
    (tmp_path / "qrels" / "test.tsv").write_text("a1 0 a2 1\na2 0 a1 1\nb1 0 b2 1\nb2 0 b1 1\n")
    found = evaluate_retrieval(data=tmp_path)
    assert found.scores[0].mrr_at_10 == 100


def test_an_empty_document_counts_as_one_that_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "full", "text": "Rain."}\n{"_id": "empty", "text": ""}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "Rain?"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("q 0 full 1\nq 0 empty 1\n")
    found = evaluate_retrieval(data=tmp_path)
    assert found.notes == ["1 documents are empty and never found"]
    assert found.scores[0].recall_at_100 == 50
    assert np.isnan(found.scores[0].low)  # one query has no interval
    assert json.loads(found.to_json())["scores"][0]["low"] is None


def test_rows_that_are_no_numbers_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As half precision gives where it overflows: one document is never found, and one query finds nothing."""
    asked, answer, other = [name for name in DOCUMENTS if len(RELEVANT[f"about {name}"]) == 1][:3]
    broken = {QUERIES[f"about {asked}"], DOCUMENTS[answer]}

    def encoded(self: Encoder, texts: list[str], tell: object = None) -> np.ndarray:
        rows = np.random.default_rng(len(texts)).normal(size=(len(texts), 8)).astype(np.float32)
        rows[[text in broken for text in texts], 3] = np.inf
        return rows

    monkeypatch.setattr(Encoder, "__call__", encoded)
    found = evaluate_retrieval(data=folder)
    assert found.notes == [
        "the rows of 1 documents hold NaN or infinity and take no part in any search",
        "the rows of 1 queries hold NaN or infinity and take no part in any search",
    ]
    recall = found.to_frame("queries").set_index("query")["recall_at_100"]
    assert recall.loc[[f"about {name}" for name in (asked, answer, other)]].tolist() == [0, 0, 1]
    with pytest.raises(InputError, match="centering cannot be fitted on the documents of manual: 1 of"):
        evaluate_retrieval(data=folder, repairs=["centering"])


def test_repairs_of_other_widths_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="384"):
        evaluate_retrieval(data=folder, repairs=[SoftDecay().fit(np.random.default_rng(0).normal(size=(50, 3)))])
