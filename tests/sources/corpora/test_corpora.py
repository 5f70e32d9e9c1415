"""Every kind of place that texts come from, and the sentence for every kind of bad input."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotrope.errors import InputError, MissingExtra
from isotrope.sources.corpora import files as text_files
from isotrope.sources.corpora.corpus import Corpus, Text, open_corpus
from isotrope.storage import provenance
from testkit.paths import SHARED_DATA

DATA = SHARED_DATA
ROWS = [
    {"text": "one two", "label": 1, "lang": "en"},
    {"text": None, "label": 2, "lang": "fr"},
    {"text": "  ", "label": 3, "lang": "fr"},
    {"text": "drei vier", "label": 4, "lang": None},
]


def texts(corpus: Corpus) -> list[str]:
    return [text.text for text in corpus]


def refusal(*args: object, **options: object) -> str:
    """The one sentence with which an input is refused."""
    with pytest.raises(InputError) as caught:
        open_corpus(*args, **options)  # type: ignore[arg-type]
    return one_sentence(str(caught.value))


def one_sentence(message: str) -> str:
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, content: str | bytes) -> str:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def jsonl(path: str, rows: list[object]) -> str:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


# The embedded default


def test_the_manual_is_the_default() -> None:
    corpus = open_corpus()
    assert corpus.name == "python-manual"
    assert texts(corpus) == texts(open_corpus("python-manual"))
    assert sum(len(text.split()) for text in texts(corpus)) == pytest.approx(65_000, rel=0.15)
    assert [text.id for text in corpus] == list(range(corpus.count() or 0))
    assert all(len(text.split()) >= 3 for text in texts(corpus))
    assert not any("  " in text or "\n" in text for text in texts(corpus))


def test_paragraphs_of_the_manual(monkeypatch: pytest.MonkeyPatch) -> None:
    headings = "".join(f"A long heading\n{sign * 14}\n\n" for sign in "*=-^~")
    topics = {
        "b": "x = 1\n\none --- two\n",
        "a": f"{headings}Too short\n*********\n\n   one\n  two *** three",
    }
    monkeypatch.setattr("pydoc_data.topics.topics", topics)
    corpus = open_corpus(group_by="topic")
    assert [(text.text, text.group) for text in corpus] == [
        *[("A long heading", "a")] * 5,
        ("one two *** three", "a"),
        ("x = 1", "b"),
        ("one --- two", "b"),
    ]


def test_the_manual_is_grouped_by_topic() -> None:
    groups = [text.group for text in open_corpus(group_by="topic")]
    assert groups == sorted(groups, key=str)
    assert {"assert", "while"} <= set(groups)
    assert "the only `group_by` there is 'topic'" in refusal(group_by="topics")
    assert "python-manual cannot take column='a'" in refusal(column="a")


def test_provenance_of_the_manual() -> None:
    facts = open_corpus().describe()
    assert facts["kind"] == "python-manual"
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["unit"] == "paragraph"
    assert facts["sha256"] == open_corpus().describe()["sha256"]
    json.dumps(facts)


# Memory and standard input


def test_texts_in_memory() -> None:
    corpus = open_corpus(["one", "", " \t", "two"])
    assert list(corpus) == [Text(0, "one"), Text(1, "two")]
    assert corpus.skipped == 2
    assert corpus.describe()["sha256"] == hashlib.sha256(b"one\0\0 \t\0two\0").hexdigest()
    assert "path" not in corpus.describe()


def test_bad_texts_in_memory() -> None:
    assert refusal([]).startswith("no text in texts in memory")
    assert "item 1 of texts in memory is a int" in refusal(["a", 1])
    assert "got a set as corpus" in refusal({"a"})
    assert "got a int as corpus" in refusal(3)
    assert "cannot take group_by='x'" in refusal(["a"], group_by="x")


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_standard_input_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"one\n\ntwo\nthree")
    corpus = open_corpus("-")
    assert texts(corpus) == texts(corpus) == ["one", "two", "three"]
    assert corpus.count() == 3
    assert corpus.describe()["sha256"] == hashlib.sha256(b"one\n\ntwo\nthree").hexdigest()
    assert list(zip(corpus, corpus, strict=True)) == [(text, text) for text in corpus]


def test_bad_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"")
    assert refusal("-") == "standard input is empty (0 bytes); give it some text."
    feed(monkeypatch, b"\n \n")
    assert refusal("-").startswith("no text in standard input")
    feed(monkeypatch, b"\n\n\xff")
    assert "standard input is not valid UTF-8 at byte 2 (line 3)" in refusal("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_a_name_is_kept_too(here: Path) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    corpus = open_corpus("pipe")
    writer.join()
    assert texts(corpus) == texts(corpus) == ["one", "two"]


# Plain text


@pytest.mark.parametrize("name", ["a.txt", "a.text", "a.md", "a.rst", "a.log", "a", "A.TXT"])
def test_lines_of_plain_text(here: Path, name: str) -> None:
    write(name, b"\xef\xbb\xbf one\r\n\r\n  \ntw\xc3\xb6\n\x0cthree\xe2\x80\xa8x")
    assert texts(open_corpus(name)) == [" one", "twö", "\x0cthree\u2028x"]
    assert texts(open_corpus(Path(name))) == texts(open_corpus(name))


def test_paragraphs_of_plain_text(here: Path) -> None:
    write("a.txt", "\none\n  two\n \n\nthree\t four\nfive")
    assert texts(open_corpus("a.txt", unit="paragraph")) == ["one two", "three four five"]


def test_provenance_of_a_file(here: Path) -> None:
    write("sub/a.txt", "one\n")
    digest = hashlib.sha256(b"one\n").hexdigest()
    corpus = open_corpus("sub/a.txt")
    assert corpus.name == "a.txt"
    assert corpus.describe() == {
        "kind": "text",
        "path": "sub/a.txt",
        "bytes": 4,
        "sha256": digest,
        "unit": "line",
        "column": None,
        "group_by": None,
        "split": None,
    }


def test_of_a_large_file_the_ends_are_hashed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_WHOLE_BYTES", 8)
    monkeypatch.setattr(provenance, "_END_BYTES", 3)
    write("a.txt", "abcdefghij")
    digest = hashlib.sha256(b"abchij10").hexdigest()
    assert provenance.describe_file("a.txt") == {"path": "a.txt", "bytes": 10, "sha256_ends": digest}


def test_bad_plain_text(here: Path) -> None:
    assert refusal(write("a.txt", "")) == "a.txt is empty (0 bytes); give a file with some text."
    assert refusal(write("b.txt", "\n  \n")).startswith("no text in b.txt")
    message = refusal(write("c.txt", b"\xef\xbb\xbf\xc3\xb6\xff"))
    assert "c.txt is not valid UTF-8 at byte 5 (line 1); convert it to UTF-8" in message
    assert "is binary or UTF-16, not UTF-8 text (NUL byte in line 1)" in refusal(write("d.bin", b"ab\0c"))
    assert "convert it to UTF-8" in refusal(write("e.txt", "one".encode("utf-16")))
    for options in ({"column": "x"}, {"group_by": "x"}):
        message = refusal(write("f.txt", "one"), **options)
        assert "holds plain text without a column 'x'" in message
        assert "work for JSON Lines, JSON, CSV, TSV, Parquet and Arrow files" in message
    assert "`split` works for Hugging Face datasets" in refusal("f.txt", split="train")
    assert "there is no unit 'lines' (did you mean 'line'?)" in refusal("f.txt", unit="lines")


def test_a_late_defect_is_found_where_it_stands(here: Path) -> None:
    corpus = open_corpus(write("a.txt", b"one\ntwo\nthr\xffee\n"))
    with pytest.raises(InputError, match=r"at byte 11 \(line 3\)"):
        list(corpus)


def test_a_file_that_is_not_there(here: Path) -> None:
    write("corpus.txt", "one")
    assert refusal("corpsu.txt") == ("there is no file 'corpsu.txt' (did you mean 'corpus.txt'?); check the path.")
    assert refusal(Path("zzz")) == "there is no file 'zzz'; check the path."
    assert "nor the folder 'no/where'" in refusal("no/where/a.txt")
    assert "there is no file ''" in refusal("")
    assert "there is no file" in refusal("many words " * 100)


def test_a_file_that_may_not_be_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.txt", "one")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert refusal("a.txt").startswith("cannot read a.txt: Permission denied")


# Compressed


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.csv.gz", "a.tsv.gz", "a.json.gz"])
def test_compressed_files(here: Path, name: str) -> None:
    plain = {
        "txt": "one\ntwo\n",
        "jsonl": '{"text": "one"}\n"two"\n',
        "csv": "text,n\none,1\ntwo,2\n",
        "tsv": "text\tn\none\t1\ntwo\t2\n",
        "json": '["one", "two"]',
    }[name.split(".")[1]]
    write(name, gzip.compress(plain.encode()))
    assert texts(open_corpus(name)) == ["one", "two"]


def test_broken_compressed_files(here: Path) -> None:
    write("a.txt.gz", "not packed")
    assert "a.txt.gz is not a whole gzip file" in refusal("a.txt.gz")
    write("b.txt.gz", gzip.compress(os.urandom(10**5).hex().encode())[:-1000])
    with pytest.raises(InputError, match=r"b\.txt\.gz is not a whole gzip file"):
        list(open_corpus("b.txt.gz"))


# Tables: the same rows in every format


def table(extension: str) -> str:
    """ROWS, in a file of this format."""
    name = f"rows{extension}"
    columns = pa.table({key: [row[key] for row in ROWS] for key in ROWS[0]})
    cells = [[str(cell or "") for cell in row.values()] for row in ROWS]
    if extension in (".jsonl", ".ndjson"):
        jsonl(name, list(ROWS))
    elif extension == ".json":
        write(name, json.dumps(ROWS))
    elif extension in (".csv", ".tsv"):
        separator = "," if extension == ".csv" else "\t"
        write(name, "\n".join(separator.join(row) for row in [list(ROWS[0]), *cells]))
    elif extension == ".parquet":
        pq.write_table(columns, name)
    elif extension == ".feather":
        pyarrow.feather.write_feather(columns, name)
    else:
        with pa.ipc.new_stream(name, columns.schema) as stream:
            stream.write_table(columns)
    return name


TABLES = [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".feather", ".arrow"]


@pytest.mark.parametrize("extension", TABLES)
def test_every_table_gives_the_same_texts(here: Path, extension: str) -> None:
    corpus = open_corpus(table(extension), group_by="lang")
    assert list(corpus) == [Text(0, "one two", "en"), Text(1, "drei vier", "null")]
    assert list(corpus) == list(corpus)
    assert corpus.skipped == 2
    assert corpus.count() == 2
    facts = corpus.describe()
    assert (facts["column"], facts["group_by"], facts["path"]) == ("text", "lang", f"rows{extension}")
    assert [text.group for text in open_corpus(f"rows{extension}", group_by="label")] == ["1", "4"]
    assert texts(open_corpus(f"rows{extension}", column="lang")) == ["en", "fr", "fr"]


@pytest.mark.parametrize("extension", TABLES)
def test_bad_columns(here: Path, extension: str) -> None:
    name = table(extension)
    assert refusal(name, column="txt") == (
        f"{name} has no column 'txt' (did you mean 'text'?); choose one of: text, label, lang."
    )
    assert f"{name} has no column 'zzz'; choose one of" in refusal(name, group_by="zzz")
    assert refusal(name, column="label") == (
        f"column 'label' of {name} does not hold strings; choose another of: text, label, lang."
    )
    assert "`unit` works for plain text" in refusal(name, unit="paragraph")


@pytest.mark.parametrize("extension", TABLES)
def test_a_corpus_goes_to_another_process(here: Path, extension: str) -> None:
    corpus = open_corpus(table(extension))
    assert texts(pickle.loads(pickle.dumps(corpus))) == texts(corpus)


def test_the_column_that_is_read_when_none_is_named(here: Path) -> None:
    def chosen(row: dict[str, object], **options: str) -> object:
        return open_corpus(jsonl("a.jsonl", [row]), **options).describe()["column"]

    assert chosen({"title": "a", "text": "b"}) == "text"
    assert chosen({"title": "a", "sentence": "b"}) == "sentence"
    assert chosen({"body": "b", "n": 1}) == "body"
    assert chosen({"body": "b", "lang": "en"}, group_by="lang") == "body"
    assert chosen({"text": 3, "body": "b"}) == "body"
    assert refusal(jsonl("b.jsonl", [{"x": "a", "y": "b"}])) == (
        "b.jsonl has several columns of strings; choose the one to read with `column`, of: x, y."
    )
    assert "c.jsonl has no column of strings" in refusal(jsonl("c.jsonl", [{"x": 1}]))
    assert open_corpus(write("d.csv", "n,said\n1,a\n2,b\n")).describe()["column"] == "said"
    assert "several columns of strings" in refusal(write("e.csv", "x,y\na,b\n"))


def test_lines_of_json(here: Path) -> None:
    assert texts(open_corpus(jsonl("a.jsonl", ["one", "two", None, {}, {"text": "three"}]))) == [
        "one",
        "two",
        "three",
    ]
    assert texts(open_corpus(jsonl("b.jsonl", [{"n": 1}, {"text": "late"}]))) == ["late"]
    assert texts(open_corpus(write("c.jsonl", '\n"\\u00f6 \\ud83d\\ude00"\n\n'))) == ["ö 😀"]


def test_bad_lines_of_json(here: Path) -> None:
    message = refusal(write("a.jsonl", '{"text": "one"}\n{"text": \n'))
    assert "line 2 of a.jsonl is not valid JSON (Expecting value at character" in message
    corpus = open_corpus(jsonl("b.jsonl", [{"text": "one"}] * 150 + [{"text": 3}]))
    with pytest.raises(InputError, match=r"line 151 of b\.jsonl cannot be used: 'text' is a int"):
        list(corpus)
    assert "line 1 of c.jsonl cannot be used: it is a list" in refusal(jsonl("c.jsonl", [[1]]))
    assert "line 1 of d.jsonl cannot be read as JSON" in refusal(write("d.jsonl", '{"text": "\\ud800"}'))
    assert "holds plain text without a column 'x'" in refusal(jsonl("e.jsonl", ["one"]), column="x")
    assert refusal(write("f.jsonl", "\n\n"), column="x").startswith("no text in f.jsonl")
    assert refusal(jsonl("g.jsonl", [{"text": None}])).startswith("no text in g.jsonl")
    corpus = open_corpus(jsonl("h.jsonl", ["one"] * 150 + [{"text": "two"}]))
    with pytest.raises(InputError, match=r"line 151 of h\.jsonl cannot be used: it is a dict"):
        list(corpus)


def test_json(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert texts(open_corpus(write("a.json", '["one", null, "two"]'))) == ["one", "two"]
    assert "b.json holds a JSON dict; give a list" in refusal(write("b.json", '{"data": []}'))
    message = refusal(write("c.json", '{"text": "one"}\n{"text": "two"}\n'))
    assert "c.json is not valid JSON (Extra data at character 17)" in message
    assert ".jsonl" in message
    assert "item 2 of d.json cannot be used: it is a int" in refusal(write("d.json", "[null, 1]"))
    monkeypatch.setattr(text_files, "JSON_LIMIT", 10)
    assert "convert it to JSON Lines (.jsonl)" in refusal("a.json")


def test_quoted_and_long_fields_of_csv(here: Path) -> None:
    long = "word " * 10**5
    write("a.csv", f'\ufeff\r\nid,text\r\n1,"a, ""b""\r\nc"\r\n\r\n2,{long}\r\n3,\r\n')
    assert texts(open_corpus("a.csv")) == ['a, "b"\r\nc', long]


def test_bad_csv(here: Path) -> None:
    message = refusal(write("a.csv", "text,n\none,1\ntwo,2,3\n"))
    assert "line 3 of a.csv has 3 fields where the header has 2" in message
    assert "line 2 of b.csv is not valid CSV" in refusal(write("b.csv", 'text,n\n"one,1\n'))
    assert refusal(write("c.csv", "text,n\n"), column="text").startswith("no text in c.csv")
    assert "no column of strings" in refusal(write("d.csv", "x,y\n1,2.5\n"))


def test_arrow_files(here: Path) -> None:
    values = [f"text {i}" for i in range(5000)]
    column = pa.chunked_array([values[:3000], values[3000:]]).dictionary_encode()
    pq.write_table(pa.table({"text": column, "list": [["a"]] * 5000}), "a.parquet", row_group_size=1500)
    assert texts(open_corpus("a.parquet")) == values
    pq.write_table(pa.table({"text": pa.array(values, pa.large_string())}), "b.parquet")
    assert texts(open_corpus("b.parquet")) == values
    assert "column 'list' of a.parquet does not hold strings" in refusal("a.parquet", column="list")
    schema = pa.schema({"text": pa.string()})
    with pa.ipc.new_file("c.arrow", schema) as file:
        file.write_table(pa.table({"text": values}), max_chunksize=700)
    assert texts(open_corpus("c.arrow")) == values
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), "d.parquet")
    assert refusal("d.parquet").startswith("no text in d.parquet")
    for name in ("e.parquet", "e.arrow", "e.feather"):
        message = refusal(write(name, "this is no such file"))
        assert message.startswith(f"cannot read {name} (")


# Folders


def test_a_folder_is_read_by_relative_path(here: Path) -> None:
    write("docs/b.txt", "three\n")
    write("docs/a/z.md", "two\n")
    write("docs/a/a.py", "one\n")
    write("docs/.hidden", "no\n")
    write("docs/.git/x.txt", "no\n")
    write("docs/c.txt", "")
    write("docs/d.png", b"\x89PNG\0")
    write("docs/e.dat", b"caf\xe9 au lait")
    write("docs/f", "ö" * 5000 + "\n")
    corpus = open_corpus("docs")
    assert texts(corpus) == ["one", "two", "three", "ö" * 5000]
    assert corpus.name == "docs"
    facts = corpus.describe()
    assert facts["path"] == "docs"
    assert [file["path"] for file in facts["files"]] == [
        str(Path("docs", name)) for name in ("a/a.py", "a/z.md", "b.txt", "f")
    ]
    assert facts["bytes"] == sum(file["bytes"] for file in facts["files"]) == 4 + 4 + 6 + 10_001
    assert facts["files_left_out"] == 3


def test_a_folder_of_tables_has_one_column(here: Path) -> None:
    jsonl("shards/0.jsonl", [{"body": "one"}])
    jsonl("shards/1.jsonl", [{"body": "two", "text": "not this"}])
    assert texts(open_corpus("shards")) == ["one", "two"]
    jsonl("shards/2.jsonl", [{"text": "three"}])
    corpus = open_corpus("shards")
    with pytest.raises(InputError, match=r"2\.jsonl has no column 'body'"):
        list(corpus)


def test_bad_folders(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("mixed/a.txt", "one")
    jsonl("mixed/b.jsonl", ["one"])
    message = refusal("mixed")
    assert "mixed holds files of several kinds: jsonl (b.jsonl), text (a.txt)" in message
    Path("empty").mkdir()
    assert refusal("empty").startswith("no text in empty: none of its 0 files")

    def refuse(place: str) -> None:
        raise PermissionError(13, "Permission denied", place)

    monkeypatch.setattr(os, "scandir", refuse)
    assert "cannot read the folder mixed: Permission denied" in refusal("mixed")


# Hugging Face datasets


@pytest.fixture
def dataset() -> object:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    return datasets.Dataset.from_list([{**row, "nested": [1]} for row in ROWS])


def test_a_dataset_folder_of_parquet_files(here: Path, dataset: object) -> None:
    for split in ("train", "test"):
        Path("hub/data").mkdir(parents=True, exist_ok=True)
        dataset.to_parquet(f"hub/data/{split}-00000-of-00001.parquet")  # type: ignore[attr-defined]
    write("hub/README.md", "A card.")
    corpus = open_corpus("hub", split="test", group_by="lang")
    assert list(corpus) == [Text(0, "one two", "en"), Text(1, "drei vier", "null")]
    assert list(corpus) == list(corpus)
    assert corpus.skipped == 2
    assert corpus.count() is None
    facts = corpus.describe()
    assert (facts["kind"], facts["path"], facts["split"], facts["column"]) == (
        "dataset",
        "hub",
        "test",
        "text",
    )
    json.dumps(facts)
    assert "'hub' has no split 'tests' (did you mean 'test'?); choose with `split` one of: train, test." in (
        refusal("hub", split="tests")
    )
    assert "hub has no column 'x'" in refusal("hub", split="train", column="x")
    assert "column 'nested' of hub does not hold strings" in refusal("hub", split="train", column="nested")
    assert "or a `split`" in refusal("hub")


def test_a_dataset_saved_to_disk(here: Path, dataset: object) -> None:
    dataset.save_to_disk("one")  # type: ignore[attr-defined]
    corpus = open_corpus("one", group_by="label")
    assert list(corpus) == [Text(0, "one two", "1"), Text(1, "drei vier", "4")]
    assert corpus.count() == 2
    assert corpus.name == "one"

    import datasets

    datasets.DatasetDict(test=dataset, extra=dataset).save_to_disk("two")
    assert "'two' has no split 'train'; choose with `split` one of: test, extra." in refusal("two")
    assert texts(open_corpus("two", split="extra")) == ["one two", "drei vier"]
    write("plain/state.json", '["one"]')
    assert texts(open_corpus("plain")) == ["one"]
    write("two/test/state.json", "{")
    assert "cannot read 'two' as a Hugging Face dataset" in refusal("two")


@pytest.mark.parametrize("name", ["wikitext", "org/name", "org/name:config"])
def test_a_dataset_that_is_out_of_reach(here: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    start = time.monotonic()
    assert f"{name!r} is neither a file here nor reachable on the Hugging Face hub" in refusal(name)
    assert time.monotonic() - start < 5


def test_without_a_network_nothing_is_tried(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    write("wikitexts", "one")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("urllib.request.getproxies", dict)

    def unknown(*_: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    assert refusal("wikitext") == (
        "'wikitext' is neither a file here (did you mean 'wikitexts'?) nor reachable on the Hugging Face hub "
        "(no network); check the name and the network."
    )


def test_an_id_and_its_config_reach_the_library(monkeypatch: pytest.MonkeyPatch, dataset: object) -> None:
    import datasets

    asked = []

    def load(*args: object, **options: object) -> object:
        asked.append((*args, options))
        return datasets.IterableDatasetDict(train=dataset.to_iterable_dataset())  # type: ignore[attr-defined]

    monkeypatch.setattr("isotrope.sources.corpora.datasets.hub_answers", lambda: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    corpus = open_corpus("org/name:small")
    assert asked == [("org/name", "small", {"streaming": True})]
    assert (corpus.name, texts(corpus)) == ("org/name:small", ["one two", "drei vier"])

    def choose(*args: object, **options: object) -> object:
        raise ValueError("Config name is missing.\nPlease pick one among: ['a', 'b']")

    monkeypatch.setattr(datasets, "load_dataset", choose)
    message = refusal("org/name")
    assert "Please pick one among: ['a', 'b']" in message
    assert "a config is named as in 'org/name:config'" in message


def test_a_stream_without_features_and_one_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def rows(good: int) -> object:
        for number in range(5):
            if number == good:
                raise ConnectionError("the line is dead")
            yield {"body": f"text {number}", "n": number}

    known = datasets.Features({"body": datasets.Value("string"), "n": datasets.Value("int64")})

    def stream(good: int, features: object = None) -> None:
        data = datasets.IterableDataset.from_generator(rows, features, gen_kwargs={"good": good})
        monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: {"train": data})

    monkeypatch.setattr("isotrope.sources.corpora.datasets.hub_answers", lambda: True)
    stream(good=9)
    assert texts(open_corpus("org/name")) == [f"text {number}" for number in range(5)]
    stream(good=3)
    assert "reading org/name stopped after row 3 (the line is dead); try again." in refusal("org/name")
    stream(good=3, features=known)
    corpus = open_corpus("org/name")
    with pytest.raises(InputError, match="reading org/name stopped after row 3"):
        list(corpus)


def test_a_missing_package_names_its_extra(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"reading a Hugging Face dataset needs .*isotrope\[evaluate\]"):
        open_corpus("wikitext")


# Laws


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)))
def test_every_table_keeps_every_text(tmp_path: Path, values: list[str]) -> None:
    import csv

    values = ["first", *values]
    wanted = [value for value in values if value.strip()]
    jsonl(str(tmp_path / "a.jsonl"), [{"text": value} for value in values])
    pq.write_table(pa.table({"text": values}), tmp_path / "a.parquet")
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([value] for value in values)])
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        corpus = open_corpus(tmp_path / name)
        assert texts(corpus) == wanted
        assert [text.id for text in corpus] == list(range(len(wanted)))
        assert corpus.skipped == len(values) - len(wanted)


@pytest.mark.parametrize("extension", [".txt", ".jsonl", ".csv", ".parquet"])
def test_memory_stays_constant(here: Path, extension: str) -> None:
    line = "some words that make a line " * 10
    name = f"a{extension}"
    count = 30_000
    if extension == ".parquet":
        pq.write_table(pa.table({"text": [f"{i} {line}" for i in range(count)]}), name)
    else:
        wrap = {".txt": "{}\n", ".jsonl": '{{"text": "{}"}}\n', ".csv": "{},1\n"}[extension]
        write(name, ("text,n\n" if extension == ".csv" else "") + wrap.format(line) * count)
    corpus = open_corpus(name)
    tracemalloc.start()
    assert corpus.count() == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 2**20  # of more than 8 MB of text


# Real data


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no development data in {DATA}")
def test_real_sets() -> None:
    wikitext = open_corpus(DATA / "wikitext-2" / "valid.txt")
    assert sum(len(text.split()) for text in texts(wikitext)) == pytest.approx(214_000, rel=0.02)
    cola = open_corpus(DATA / "glue" / "cola" / "train.tsv", group_by="label")
    assert cola.count() == 8551
    assert {text.group for text in cola} == {"0", "1"}
    assert cola.describe()["column"] == "sentence"
    assert "choose the one to read with `column`, of: sentence1, sentence2, label." in (
        refusal(DATA / "glue" / "rte" / "train.tsv")
    )
