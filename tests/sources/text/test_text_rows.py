"""One row for each text, against the source's own rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models import load as load_module
from isotrope.sources.text.encoder import Encoder
from testkit.models import save_model, texts


@pytest.fixture(scope="module")
def bert(small_model: Callable[[str], Path]) -> Path:
    return small_model("bert")


def rows_of(bert: Path, some: list[str], **reading: Any) -> np.ndarray:
    source = Input(model=bert, text=some, in_order=True, **reading).open()
    return np.concatenate([np.asarray(*batch.layers.values()) for batch in source.batches()])


def test_rows_are_in_the_order_of_the_texts(bert: Path) -> None:
    some = texts(100)
    some += [some[3], some[50], some[3]]
    found = Encoder(Input(model=bert, batch_size=8))(some)
    np.testing.assert_allclose(found, rows_of(bert, some, pooling="mean", layers=[-1]), atol=1e-5)
    np.testing.assert_array_equal(found[3], found[-1])


@pytest.mark.parametrize(
    ("reading", "expected", "layers"),
    [
        ({"layers": "1,-1"}, {"pooling": "mean:1+-1"}, "1,-1"),
        ({"layers": [1, -1]}, {"pooling": "mean:1+-1"}, "1,-1"),
        ({"layers": 2, "pooling": "cls"}, {"layers": [2], "pooling": "cls"}, "2"),
        ({"pooling": "first+last"}, {"pooling": "mean:1+-1"}, "1,-1"),
        ({"pooling": "max"}, {"pooling": "max", "layers": [-1]}, "-1"),
        ({"pooling": "sbert-wk:0..-1"}, {"pooling": "sbert-wk:0..-1"}, "0..-1"),
    ],
)
def test_layers_and_pooling(bert: Path, reading: dict[str, Any], expected: dict[str, Any], layers: str) -> None:
    some = texts(12)
    encoder = Encoder(Input(model=bert, **reading))
    np.testing.assert_allclose(encoder(some), rows_of(bert, some, **expected), atol=1e-5)
    assert encoder.layers == layers


def test_several_layers_are_averaged(bert: Path) -> None:
    some = texts(12)
    first, last = (rows_of(bert, some, pooling="mean", layers=[layer]) for layer in (1, 3))
    np.testing.assert_allclose(Encoder(Input(model=bert, layers="1,3"))(some), (first + last) / 2, atol=1e-5)


def test_the_model_is_loaded_once(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = load_module.load
    monkeypatch.setattr(load_module, "load", lambda *a, **k: loads.append(a) or load(*a, **k))
    encoder = Encoder(Input(model=bert))
    assert len(encoder(texts(5))) == 5
    assert len(encoder(texts(7, seed=1))) == 7
    assert len(encoder.of(open_corpus(texts(4)))) == 4
    assert len(loads) == 1


def test_texts_of_a_corpus_stay_in_order(bert: Path) -> None:
    some = texts(30)
    encoder = Encoder(Input(model=bert, batch_size=4))
    np.testing.assert_allclose(encoder.of(open_corpus([*some[:9], " ", *some[9:]])), encoder(some), atol=1e-5)


def test_progress(bert: Path) -> None:
    told: list[tuple[int, int]] = []
    Encoder(Input(model=bert, batch_size=1))(["a cat", "a mat", "a cat"], lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]


def test_texts_without_a_row_are_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 of 2 texts are blank \(the first: ' '\); leave them out"):
        Encoder(Input(model=bert))(["a cat", " "])
    gpt = save_model(tmp_path / "gpt2", "gpt2")  # its tokenizer knows no unknown token
    with pytest.raises(InputError, match=r"1 of 2 texts have no token for the tokenizer of .*gpt2 \(the first: '§'\)"):
        Encoder(Input(model=gpt))(["the cat", "§"])
