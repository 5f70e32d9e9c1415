"""Repaired models run by mteb itself, on small tasks of its own classes, against scipy and mteb's own wrapper."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import mteb
import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskRetrieval, AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from isotrope.errors import InputError, MissingExtra
from isotrope.evaluation.retrieval import evaluate_retrieval
from isotrope.integrations.mteb import mteb_model
from isotrope.repairs import Repair, SoftDecay, Whitening
from isotrope.sources.models.location import find_embedded_folder
from testkit.embedding_server import EmbeddingServer, embed

#: Topics of the Python manual: the first line asks, and the words behind it answer.
TOPICS = {
    name: (lines[0].strip(), " ".join(" ".join(lines[1:]).split()[:20]))
    for name, text in sorted(topics.items())[:60]
    if len(lines := [line for line in text.splitlines() if line.strip("*=-~^ \n")]) > 4
}
ASKED, ANSWERS = ([pair[i] for pair in TOPICS.values()] for i in (0, 1))
SECOND = ANSWERS[:20] + ANSWERS[21:] + ANSWERS[20:21]  # of which some belong to ASKED


def _metadata(kind: str, score: str) -> TaskMetadata:
    return TaskMetadata(
        name=f"Manual{kind}",
        description="Topics of the Python manual.",
        dataset={"path": "none", "revision": "1"},
        type=kind,
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=score,
    )


class ManualSTS(AbsTaskSTS):
    """A topic's first line and its text, or a neighbour's; the score is the number of words in common."""

    metadata = _metadata("STS", "cosine_spearman")
    scores = tuple(len(set(a.lower().split()) & set(b.lower().split())) for a, b in zip(ASKED, SECOND, strict=True))

    def load_data(self, *_: Any, **__: Any) -> None:
        columns = {"sentence1": ASKED, "sentence2": SECOND, "score": list(self.scores)}
        self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
        self.data_loaded = True


class ManualRetrieval(AbsTaskRetrieval):
    """Which text a topic's first line belongs to."""

    metadata = _metadata("Retrieval", "ndcg_at_10")
    ignore_identical_ids = True

    def load_data(self, *_: Any, **__: Any) -> None:
        documents = [{"id": name, "title": "", "text": text} for name, text in zip(TOPICS, ANSWERS, strict=True)]
        queries = [{"id": f"about {name}", "text": text} for name, text in zip(TOPICS, ASKED, strict=True)]
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(documents),
                    "queries": Dataset.from_list(queries),
                    "relevant_docs": {f"about {name}": {name: 1} for name in TOPICS},
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True


def scores(model: Any, task: Any, cache: Any = None) -> dict[str, float]:
    result = mteb.evaluate(model, task(), cache=cache, show_progress_bar=False)
    found: dict[str, float] = result.task_results[0].scores["test"][0]
    return found


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return SentenceTransformer(find_embedded_folder(), device="cpu")


@pytest.fixture(scope="module")
def pooled(model: SentenceTransformer) -> dict[str, np.ndarray]:
    """Mean pooled rows by sentence-transformers, before the division by their length."""
    inner = SentenceTransformer(modules=[model[0], model[1]], device="cpu")
    return dict(zip(ASKED + ANSWERS, inner.encode(ASKED + ANSWERS), strict=True))


@pytest.fixture(scope="module")
def repair(pooled: dict[str, np.ndarray]) -> Repair:
    return SoftDecay(-0.6).fit(np.stack(list(pooled.values())))


def by_scipy(pooled: dict[str, np.ndarray], repair: Repair | None = None) -> float:
    first, second = (np.stack([pooled[text] for text in texts]).astype(float) for texts in (ASKED, SECOND))
    if repair is not None:
        first, second = repair.transform(first), repair.transform(second)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return float(spearmanr(ManualSTS.scores, cosines).statistic)


def test_raw_models_score_as_by_mteb_itself(model: SentenceTransformer) -> None:
    for task in (ManualSTS, ManualRetrieval):
        expected = scores(model, task)
        assert scores(mteb_model(model), task) == expected
        assert_allclose(scores(mteb_model(), task)["main_score"], expected["main_score"], atol=1e-4)
    assert 0.5 < expected["main_score"] < 1


def test_a_repaired_reading_scores_as_scipy_says(pooled: dict[str, np.ndarray], repair: Repair, tmp_path: Path) -> None:
    repair.save(tmp_path / "repair")
    expected = by_scipy(pooled, repair)
    for given in (repair, tmp_path / "repair", str(tmp_path / "repair")):
        found = scores(mteb_model(repair=given, pooling="mean", layers=-1), ManualSTS)
        assert_allclose(found["cosine_spearman"], expected, atol=1e-4)
        assert_allclose(found["spearman"], expected, atol=1e-4)
    assert abs(expected - by_scipy(pooled)) > 1e-3


def test_a_repaired_sentence_transformer_scores_as_scipy_says(
    model: SentenceTransformer, pooled: dict[str, np.ndarray], repair: Repair
) -> None:
    found = scores(mteb_model(model, repair), ManualSTS)
    assert_allclose(found["cosine_spearman"], by_scipy(pooled, repair), atol=1e-4)
    encoded = {text: row / np.linalg.norm(row) for text, row in pooled.items()}
    last = Whitening(32).fit(np.stack(list(encoded.values())))
    found = scores(mteb_model(model, last, rows="encoded"), ManualSTS)
    assert_allclose(found["cosine_spearman"], by_scipy(encoded, last), atol=1e-4)


def test_retrieval_scores_as_by_isotrope_itself(repair: Repair, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    documents = [json.dumps({"_id": name, "text": text}) for name, text in zip(TOPICS, ANSWERS, strict=True)]
    queries = [json.dumps({"_id": f"about {name}", "text": text}) for name, text in zip(TOPICS, ASKED, strict=True)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(documents))
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    (tmp_path / "qrels" / "test.tsv").write_text("\n".join(f"about {name}\t{name}\t1" for name in TOPICS))
    ours = evaluate_retrieval(data=tmp_path, repairs=[repair]).scores[1]
    theirs = scores(mteb_model(repair=repair), ManualRetrieval)
    for name in ("ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_10"):
        assert_allclose(getattr(ours, name), 100 * theirs[name], atol=1e-2)  # mteb rounds to five places


def test_results_are_kept_apart_by_layers_and_fitted_repair(
    model: SentenceTransformer, pooled: dict[str, np.ndarray], repair: Repair, tmp_path: Path
) -> None:
    """mteb gives back what it has under a name."""
    rows = np.stack(list(pooled.values()))
    cache = mteb.ResultCache(tmp_path)
    models = [
        mteb_model(),
        mteb_model(layers=1),
        mteb_model(pooling="cls"),
        mteb_model(repair=repair),
        mteb_model(repair=SoftDecay(-0.6).fit(rows[::2])),
        mteb_model(prompts={"STS": "query: "}),
        mteb_model(model),
        mteb_model(model, repair),
        mteb_model(model, SoftDecay(-0.6).fit(rows[::2])),
    ]
    paths = {cache.get_task_result_path("ManualSTS", found.mteb_model_meta) for found in models}
    assert len(paths) == len(models)
    raw, bent = (scores(found, ManualSTS, cache)["main_score"] for found in (models[0], models[3]))
    assert abs(raw - bent) > 1e-3
    assert_allclose(scores(mteb_model(repair=repair), ManualSTS, cache)["main_score"], bent, atol=1e-6)
    assert len(list(tmp_path.rglob("ManualSTS.json"))) == 2


def test_prompts_stand_before_the_texts_they_are_for() -> None:
    prompts = {"query": "tennis weather: ", "document": "passage: "}
    theirs = SentenceTransformer(find_embedded_folder(), device="cpu", prompts=prompts)
    expected = scores(theirs, ManualRetrieval)["main_score"]
    assert_allclose(scores(mteb_model(prompts=prompts), ManualRetrieval)["main_score"], expected, atol=1e-4)
    assert abs(expected - scores(mteb_model(), ManualRetrieval)["main_score"]) > 1e-3


def test_a_model_behind_an_endpoint(embedding_server: EmbeddingServer) -> None:
    model = mteb_model("small", endpoint=embedding_server.url, concurrency=2)
    meta = model.mteb_model_meta
    assert (meta.name, meta.n_parameters, meta.framework) == ("isotrope/small", None, ["API"])
    assert embedding_server.url in meta.experiment_name or meta.experiment_kwargs["endpoint"] == embedding_server.url
    texts = ["one", " ", "two"]
    rows = model.encode([{"text": texts}], task_metadata=ManualSTS.metadata)
    assert_allclose(rows, [embed("one"), np.zeros(16), embed("two")])


def test_blank_texts_are_like_no_other() -> None:
    batches = [{"text": ["a text", " "]}, {"text": ["", "another"]}]
    rows = mteb_model().encode(batches, task_metadata=ManualSTS.metadata, hf_split="test", hf_subset="default")
    assert rows.shape == (4, 384)
    assert (np.linalg.norm(rows, axis=1) > 0).tolist() == [True, False, False, True]


def test_what_cannot_be_asked_is_refused(model: SentenceTransformer, repair: Repair) -> None:
    with pytest.raises(InputError, match="leave out layers"):
        mteb_model(model, layers=1)
    with pytest.raises(InputError, match="leave out prompts"):
        mteb_model(model, prompts={"query": "query: "})
    with pytest.raises(InputError, match="int8"):
        mteb_model().encode([], task_metadata=ManualSTS.metadata, precision="int8")
    with pytest.raises(InputError, match="rows='pooled'"):
        mteb_model(model, repair, rows="encoded")


def test_without_mteb_its_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb.models", None)
    monkeypatch.delitem(sys.modules, "isotrope.integrations.mteb")
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[evaluate\]'"):
        import_module("isotrope.integrations.mteb")
