"""Token weights against counts by hand, and means weighted by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError, StoreError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import load
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.token_weights import TokenWeights, sif, sif_weights, vocabulary
from testkit.models import texts

pytest.importorskip("torch")

TEXTS = texts(17, seed=1)


@pytest.fixture(scope="module")
def bert(small_model: Callable[[str], Path]) -> Any:
    return load(small_model("bert"), exact=True)


@pytest.fixture(scope="module")
def weights(bert: Any) -> TokenWeights:
    return TokenWeights(np.random.default_rng(0).uniform(0.1, 2.0, vocabulary(bert)))


def test_smooth_inverse_frequency_is_that_of_the_paper() -> None:
    counts = np.array([0, 1, 3, 96])
    np.testing.assert_allclose(sif(counts, 0.02), [1.0, 2 / 3, 0.4, 0.02 / 0.98], rtol=1e-6)
    with pytest.raises(InputError, match="no token was counted"):
        sif(np.zeros(3, np.int64))
    with pytest.raises(InputError, match="the smoothing is 0, expected a number above zero"):
        sif(counts, 0.0)


def test_tokens_are_counted_as_the_tokenizer_gives_them(bert: Any) -> None:
    found = sif_weights(bert, open_corpus(["the cat", "the mat zebra"]), smoothing=0.1)
    ids = bert.tokenizer.convert_tokens_to_ids
    seen = {"[CLS]": 2, "[SEP]": 2, "the": 2, "cat": 1, "mat": 1, "[UNK]": 1}
    expected = np.ones(len(bert.tokenizer))
    for token, count in seen.items():
        expected[ids(token)] = 0.1 / (0.1 + count / 9)
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)
    assert found.facts["tokens"] == 9
    assert (found.facts["kind"], found.facts["smoothing"]) == ("sif", 0.1)
    name = open_corpus(["the cat"]).name
    assert found.facts["corpus"]["name"] == name
    assert str(found) == f"smooth inverse frequency, a = 0.1, of 9 tokens in {name}"


def test_a_long_text_counts_up_to_where_it_is_cut(bert: Any) -> None:
    found = sif_weights(bert, open_corpus(["cat " * 100]), max_length=12)
    assert found.facts["tokens"] == 12


@pytest.mark.parametrize("special_tokens", ["keep", "drop"])
@pytest.mark.parametrize("layers", ["-1", "1+-1"])
def test_the_mean_counts_each_token_by_its_weight(
    bert: Any, weights: TokenWeights, special_tokens: str, layers: str
) -> None:
    corpus = open_corpus(TEXTS)
    options: dict[str, Any] = {"special_tokens": special_tokens, "batch_size": 4, "in_order": True}
    source = TextSource(bert, corpus, layers=layers, pooling="mean", token_weights=weights, **options)
    found = np.concatenate([batch.layers[source.layers[0]].numpy() for batch in source.batches()])
    tokens = list(TextSource(bert, corpus, layers="1,3", **options).batches())
    sequence, token = (np.concatenate([getattr(b.rows, name) for b in tokens]) for name in ("sequence", "token"))
    states = {layer: np.concatenate([b.layers[layer].numpy() for b in tokens]) for layer in (1, 3)}
    rows = states[3] if layers == "-1" else (states[1] + states[3]) / 2
    by_hand = [
        np.average(rows[sequence == i], axis=0, weights=weights.values[token[sequence == i]]) for i in range(len(TEXTS))
    ]
    np.testing.assert_allclose(found, by_hand, rtol=0, atol=1e-6)
    even = TextSource(bert, corpus, layers=layers, pooling="mean", **options)
    plain = np.concatenate([batch.layers[even.layers[0]].numpy() for batch in even.batches()])
    assert abs(plain - found).max() > 1e-3


def test_saved_weights_are_those_that_an_input_reads(
    small_model: Callable[[str], Path], weights: TokenWeights, tmp_path: Path
) -> None:
    given = TokenWeights(weights.values, {"kind": "drawn", "seed": 0})
    path = tmp_path / "weights.safetensors"
    given.save(path)
    again = TokenWeights.load(path)
    assert again.facts == given.facts
    np.testing.assert_array_equal(again.values, given.values)
    reading = Input(model=small_model("bert"), text=TEXTS, pooling="mean", layers="2", token_weights=path)
    described = reading.open().describe()["token_weights"]
    assert described == {"kind": "drawn", "seed": 0, "sha256": given.describe()["sha256"]}
    assert json.dumps(described)


def test_weights_that_cannot_be_used_are_refused(bert: Any, weights: TokenWeights, tmp_path: Path) -> None:
    for pooling in (None, "cls", "weightedmean", "sbert-wk:0..-1"):
        with pytest.raises(InputError, match="token weights are for the pooling mean, got"):
            TextSource(bert, open_corpus(TEXTS), pooling=pooling, token_weights=weights)
    with pytest.raises(InputError, match=r"got weights of 3 token ids, and .* has 22; count them by its own tokenizer"):
        TextSource(bert, open_corpus(TEXTS), pooling="mean", token_weights=TokenWeights(np.ones(3)))
    for bad in ([1.0, 0.0], [1.0, np.nan], [[1.0]], [-1.0]):
        with pytest.raises(InputError, match="token weights are numbers above zero, one for each token id"):
            TokenWeights(np.array(bad))
    with pytest.raises(InputError, match="vectors have no use for token-weights"):
        Input(vectors=np.ones((3, 2)), token_weights=weights).open()
    with pytest.raises(StoreError, match="No such file"):
        TokenWeights.load(tmp_path / "none.safetensors")
    from safetensors.numpy import save_file

    save_file({"other": np.ones(3)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="does not hold token weights; save them with TokenWeights"):
        TokenWeights.load(tmp_path / "other.safetensors")
