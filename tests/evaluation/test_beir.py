"""Folders in the format of BEIR: what is read, and what is refused with the line that is wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isotrope.errors import InputError
from isotrope.evaluation.beir import open_set

DOCUMENTS = [
    {"_id": "d1", "title": "Rain", "text": "falls from clouds."},
    {"_id": "d2", "title": "", "text": " Snow is frozen. ", "metadata": {"source": "almanac"}},
    {"_id": 3, "text": "Hail"},
    {"_id": "d4", "title": "Only a title", "text": ""},
    {"_id": "d5", "title": None, "text": " "},
]
QUERIES = [
    {"_id": "q2", "text": "What is frozen?"},
    {"_id": "q1", "text": "What falls?"},
    {"_id": "unjudged", "text": "Who?"},
]
JUDGEMENTS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t1\nq2\td2\t1\nq2\td1\t0\n"


def lines(entries: list[dict[str, object]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "weather"
    (found / "qrels").mkdir(parents=True)
    (found / "corpus.jsonl").write_text(lines(DOCUMENTS))
    (found / "queries.jsonl").write_text(lines(QUERIES))
    (found / "qrels" / "test.tsv").write_text(JUDGEMENTS)
    return found


def test_documents_are_title_and_text_queries_those_with_judgements_and_empty_documents_are_told(folder: Path) -> None:
    found = open_set(folder)
    assert found.name == "weather"
    assert found.documents == ["d1", "d2", "3", "d4"]
    assert list(found.texts()) == ["Rain falls from clouds.", "Snow is frozen.", "Hail", "Only a title"]
    assert list(found.texts()) == list(found.texts())  # read anew each time
    assert found.queries == {"q2": "What is frozen?", "q1": "What falls?"}
    assert found.judgements == {"q2": {"d2": 1, "d1": 0}, "q1": {"d1": 2, "3": 1}}
    assert found.notes == ["1 documents are empty and never found"]


@pytest.mark.parametrize(
    "written",
    [
        "q1\td1\t2\nq1\t3\t1\nq2\td2\t1\nq2\td1\t0\n",  # without a header, whose first line BEIR's reader would lose
        "q1 0 d1 2\nq1 0 3 1\nq2 0 d2 1\nq2 0 d1 0\n",  # TREC
        "q1\tQ0\td1\t2\r\n\r\nq1\tQ0\t3\t1.0\r\nq2\tQ0\td2\t1\r\nq2\tQ0\td1\t0",
        "\ufeffquery_id\tdoc_id\trelevance\n" + JUDGEMENTS.partition("\n")[2] + "q1\td1\t2\n",  # one said again
    ],
)
def test_judgements_may_have_a_header_or_be_of_trec(folder: Path, written: str) -> None:
    expected = open_set(folder).judgements
    (folder / "qrels" / "dev.tsv").write_text(written)
    assert open_set(folder, "dev").judgements == expected


def test_packed_files_are_read(folder: Path) -> None:
    whole = open_set(folder)
    texts = list(whole.texts())
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    found = open_set(folder)
    assert list(found.texts()) == texts
    assert found.queries == whole.queries


def test_queries_without_relevant_documents_and_with_their_own_id_are_told(folder: Path) -> None:
    more = [{"_id": "q3", "text": "Is there fog?"}, {"_id": "d1", "text": "What falls from clouds?"}]
    (folder / "queries.jsonl").write_text(lines(QUERIES + more))
    (folder / "qrels" / "test.tsv").write_text(JUDGEMENTS + "q3\td1\t0\nq3\td2\t-1\nd1\td1\t1\n")
    _, without, own = open_set(folder).notes
    assert without == "1 queries have no relevant document and score 0, as in trec_eval"
    assert own == "1 relevant documents have the id of their query and are never found, as in BEIR"


def _corpus(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "corpus.jsonl").write_text(text)


def _queries(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "queries.jsonl").write_text(text)


def _judgements(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "qrels" / "test.tsv").write_text(text)


WHOLE = lines(DOCUMENTS)

BAD: list[tuple[Callable[[Path], object], list[str]]] = [
    (lambda folder: (folder / "corpus.jsonl").unlink(), ["no corpus.jsonl", "weather"]),
    (lambda folder: (folder / "queries.jsonl").unlink(), ["no queries.jsonl"]),
    (lambda folder: (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv"), ["'test'", "dev"]),
    (_judgements(JUDGEMENTS + "q1\td9\t1\nq1\td8\t1\n"), ["2 of 6", "documents", "'d9'", "line 6", "corpus.jsonl"]),
    (_judgements(JUDGEMENTS + "q9\td1\t1\n"), ["1 of 5", "queries", "'q9'", "line 6", "queries.jsonl"]),
    (_judgements(JUDGEMENTS + "q1\td1\t1\n"), ["line 6", "'d1'", "relevance 1", "2 in an earlier line"]),
    (_judgements(JUDGEMENTS + "q1\td2\n"), ["no judgement in line 6"]),
    (_judgements(JUDGEMENTS + "q1\td2\tyes\n"), ["no judgement in line 6", "whole number"]),
    (_judgements(JUDGEMENTS + "q1\td2\t0.5\n"), ["no judgement in line 6"]),
    (_judgements(JUDGEMENTS + "\td2\t1\n"), ["no judgement in line 6"]),
    (_judgements("query-id\tcorpus-id\tscore\n"), ["no document relevant"]),
    (_judgements("q1\td1\t0\nq2\td2\t0\n"), ["no document relevant", "above 0"]),
    (_corpus(WHOLE + '{"_id": "d6", "text": "cut'), ["corpus.jsonl", "not JSON in line 6"]),
    (_corpus(WHOLE + '["d6", "text"]\n'), ["line 6", "_id"]),
    (_corpus(WHOLE + '{"id": "d6", "text": "no _id"}\n'), ["line 6", "_id"]),
    (_corpus(WHOLE + '{"_id": "d6", "title": "no text"}\n'), ["line 6", '"text"']),
    (_corpus(WHOLE + '{"_id": "d6", "text": 7}\n'), ["line 6", '"text"']),
    (_corpus(WHOLE + "\n" + lines(DOCUMENTS[1:3])), ["2 ids more than once", "'d2'", "line 7"]),
    (_corpus(""), ["corpus.jsonl is empty"]),
    (_queries(lines(QUERIES + QUERIES[:1])), ["queries.jsonl", "1 ids more than once", "'q2'", "line 4"]),
    (_queries(lines([QUERIES[0], {"_id": "q1", "text": ""}])), ["1 queries", "empty", "'q1'"]),
    (lambda folder: (folder / "corpus.jsonl").write_bytes(b"\xff\xfe"), ["UTF-8"]),
    (
        _corpus(lines([{"_id": name, "text": ""} for name in ("d1", "d2", "3")])),
        ["all documents", "empty"],
    ),
]


@pytest.mark.parametrize(("spoil", "words"), BAD)
def test_what_cannot_be_used_is_one_sentence_that_names_the_place(
    folder: Path, spoil: Callable[[Path], object], words: list[str]
) -> None:
    spoil(folder)
    with pytest.raises(InputError) as caught:
        open_set(folder)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        open_set(tmp_path / "nosuch")
