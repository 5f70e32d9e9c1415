"""Sentence-transformers models taken as they are: the space "encoded" is what their own encode returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.sources.encoded import has_pipeline
from isotrope.sources.inputs import Input
from isotrope.sources.text_rows import Encoder
from models import texts

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


def test_scan_and_advice(sentence_model: Path) -> None:
    corpus = [f"{text} {i}" for i, text in enumerate(texts(400))]
    findings = isotrope.scan(model=sentence_model, text=corpus, layers="encoded", measures="mean_cosine", sample=0)
    rows = library.SentenceTransformer(str(sentence_model), device="cpu").encode(corpus).astype(np.float64)
    n = len(rows)
    cosine = (np.square(rows.sum(axis=0)).sum() - n) / (n * (n - 1))  # rows of length 1
    assert findings.readings[0].value == pytest.approx(cosine, abs=1e-4)
    assert isotrope.advise(model=str(sentence_model), text=corpus).layers == "encoded"


def test_an_endpoints_answers_in_a_parquet_file(tmp_path: Path) -> None:
    import pandas as pd

    rows = np.random.default_rng(0).normal(size=(50, 6))
    frame = pd.DataFrame(
        {
            "custom_id": [f"request-{i}" for i in range(50)],
            "input": ["a text"] * 50,
            "model": ["text-embedding"] * 50,
            "embedding": list(rows),
            "prompt_tokens": [3] * 50,
        }
    )
    frame.to_parquet(tmp_path / "answers.parquet")
    source = Input(vectors=str(tmp_path / "answers.parquet")).open()
    (batch,) = source.batches()
    np.testing.assert_array_equal(batch.layers[0], rows)
