"""Sentence-transformers models taken as they are: the space "encoded" is what their own encode returns."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.sources.text.sentence_model import has_pipeline
from testkit.models import texts

library = pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def sentence_model(small_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """[CLS] of a small BERT, through a dense layer with its tanh to 5 columns, and normalised."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    torch.manual_seed(0)
    modules = [Transformer(str(small_model("bert"))), Pooling(16, "cls"), Dense(16, 5), Normalize()]
    folder = tmp_path_factory.mktemp("sentences") / "model"
    library.SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder


def test_rows_are_what_encode_returns(sentence_model: Path) -> None:
    corpus = texts(300)
    source = Input(model=str(sentence_model), text=corpus, layers="encoded", batch_size=16).open()
    batches = list(source.batches())
    assert (source.layers, source.width, source.total, len(batches)) == (["encoded"], 5, 300, 3)
    wanted = library.SentenceTransformer(str(sentence_model), device="cpu").encode(corpus)
    np.testing.assert_allclose(np.concatenate([b.layers["encoded"].numpy() for b in batches]), wanted, atol=1e-5)
    (last,) = source.batches(2)
    np.testing.assert_allclose(last.layers["encoded"].numpy(), wanted[256:], atol=1e-5)
    assert source.describe()["modules"] == ["Transformer", "Pooling", "Dense", "Normalize"]


def test_without_layers_and_pooling_a_sentence_model_is_taken_as_it_is(
    sentence_model: Path, small_model: Callable[[str], Path]
) -> None:
    corpus = texts(20)
    own = Encoder(Input(model=str(sentence_model)))
    wanted = library.SentenceTransformer(str(sentence_model), device="cpu").encode(corpus)
    np.testing.assert_allclose(own(corpus), wanted, atol=1e-5)
    assert (own.layers, own.pooling) == ("encoded", "encoded")
    named = Encoder(Input(model=str(sentence_model), pooling="mean"))
    assert (named.layers, named.pooling, named(corpus).shape[1]) == ("-1", "mean", 16)
    assert (has_pipeline(sentence_model), has_pipeline(small_model("bert")), has_pipeline(None)) == (True, False, False)


def test_the_layers_of_its_transformer_are_still_there(sentence_model: Path) -> None:
    source = Input(model=str(sentence_model), text=texts(3)).open()
    assert (source.layers, source.width) == ([0, 1, 2, 3], 16)


def test_what_does_not_go_with_it_is_refused(sentence_model: Path, small_model: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="what the model makes itself; leave pooling out"):
        Input(model=str(sentence_model), text=texts(3), layers="encoded", pooling="mean").open()
    with pytest.raises(InputError, match="is that of a sentence-transformers model"):
        Input(model=str(small_model("bert")), text=texts(3), layers="encoded").open()


@pytest.mark.long
def test_scan_and_advice(sentence_model: Path) -> None:
    corpus = [f"{text} {i}" for i, text in enumerate(texts(400))]
    findings = isotrope.scan(model=sentence_model, text=corpus, layers="encoded", measures="mean_cosine", sample=0)
    rows = library.SentenceTransformer(str(sentence_model), device="cpu").encode(corpus).astype(np.float64)
    n = len(rows)
    cosine = (np.square(rows.sum(axis=0)).sum() - n) / (n * (n - 1))  # rows of length 1
    assert findings.readings[0].value == pytest.approx(cosine, abs=1e-4)
    assert isotrope.advise(model=str(sentence_model), text=corpus).layers == "encoded"


def answers(vectors: list[Any], name: str = "embedding") -> pa.Table:
    """What an embedding service answered, a row for each request."""
    n = len(vectors)
    columns = {"custom_id": [f"request-{i}" for i in range(n)], "input": ["a text"] * n, "prompt_tokens": [3] * n}
    return pa.table({**columns, name: vectors})


def in_base64(rows: np.ndarray) -> list[str]:
    """Little-endian float32, packed number by number."""
    return [base64.b64encode(b"".join(struct.pack("<f", x) for x in row)).decode() for row in rows]


@pytest.mark.parametrize("form", ["list", "base64"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_an_endpoints_answers(tmp_path: Path, form: str, suffix: str) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    table = answers(rows.tolist() if form == "list" else in_base64(rows))
    file = tmp_path / f"answers.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, file, row_group_size=20)
    else:
        with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
    source = Input(vectors=str(file), batch_size=16, group_by="prompt_tokens").open()
    batches = list(source.batches())
    np.testing.assert_array_equal(np.concatenate([batch.layers[0] for batch in batches]), rows)
    assert (source.width, source.total) == (6, 50)
    later = list(source.batches(2))
    np.testing.assert_array_equal(np.concatenate([batch.layers[0] for batch in later]), rows[32:])
    assert set(later[0].rows.group.tolist()) == {"3"}


def test_base64_under_another_name_has_to_be_named_and_what_is_none_is_refused(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    file = tmp_path / "answers.parquet"

    def opened(vectors: list[Any], name: str = "embedding", column: str | None = None) -> Any:
        pq.write_table(answers(vectors, name), file)
        return Input(vectors=str(file), column=column).open()

    with pytest.raises(InputError, match=r"or name a column of base64 with --column\.$"):
        opened(in_base64(rows), "vector")
    (batch,) = opened(in_base64(rows), "vector", "vector").batches()
    np.testing.assert_array_equal(batch.layers[0], rows)
    with pytest.raises(InputError, match=r"row 0 of .*\[input\] .* is 'a text', expected base64 of float32 numbers"):
        opened(in_base64(rows), column="input")
    with pytest.raises(InputError, match=r"row 2 .* is 'AACA', expected base64"):  # three bytes are no float32
        list(opened([*in_base64(rows[:2]), "AACA"]).batches())
    with pytest.raises(InputError, match=r"row 1 .* is null, expected base64"):
        list(opened([in_base64(rows)[0], None]).batches())
    with pytest.raises(InputError, match=r"row 1 .* has 2 numbers, expected 3 as in row 0"):
        list(opened([in_base64(rows)[0], in_base64(rows[:, :2])[1]]).batches())
