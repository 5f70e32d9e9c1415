"""SBERT-WK against the paper's equations, one token and one layer at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import load
from isotrope.sources.text.pooling import parse, sbert_wk
from isotrope.sources.text.source import TextSource
from testkit.models import texts

torch = pytest.importorskip("torch")

TEXTS = texts(9, seed=3)


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def by_qr(context: Any, v: Any) -> Any:
    """The part of v in the span of its context, (d, c), as the paper takes it."""
    q, r = np.linalg.qr(np.column_stack([context, v]))
    return q[:, :-1] @ r[:-1, -1]


def by_least_squares(context: Any, v: Any) -> Any:
    """The same where the context repeats itself, and QR's last columns are left to rounding."""
    return context @ np.linalg.lstsq(context, v, rcond=1e-10)[0]


def unified(layers: Any, within: Callable[[Any, Any], Any], m: int = 2) -> Any:
    """A token's layers (L, d) -> (d,): Σ α_i v_i with α from inverse alignment and novelty."""
    alignment, novelty = [], []
    for i, v in enumerate(layers):
        left = list(layers[i - m : i]) if i >= m else []
        context = left + list(layers[i + 1 : i + 1 + m])
        part = within(np.stack(context, axis=1), v)
        beta = np.mean([cosine(part, c) for c in context])
        alignment.append(1 / beta / (len(context) + 1))
        novelty.append(np.linalg.norm(v - part) / np.linalg.norm(v))
    weights = np.array(alignment) / sum(alignment) + np.array(novelty) / sum(novelty)
    return weights / weights.sum() @ layers


def sentence(tokens: Any, within: Callable[[Any, Any], Any] = by_qr) -> Any:
    """A text's tokens (t, L, d) -> (d,): each weighted by the variance of its cosines between adjacent layers."""
    variances = [np.var([cosine(a, b) for a, b in pairwise(layers)]) for layers in tokens]
    return np.array(variances) / sum(variances) @ np.stack([unified(layers, within) for layers in tokens])


def states(tokens: int, layers: int, d: int, seed: int) -> Any:
    """Layers (L, t, d) that move away from the first a little at a time, as those of models do."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(layers, tokens, d)) * rng.uniform(0.1, 1.0, size=(layers, tokens, 1))
    return 2 * rng.normal(size=(tokens, d)) + np.cumsum(steps, axis=0)


@pytest.mark.parametrize("layers", [3, 4, 5, 9, 21])
@pytest.mark.parametrize("length", [1, 2, 17])
def test_it_is_what_the_equations_say(layers: int, length: int) -> None:
    x = states(length, layers, 24, seed=layers)
    found = sbert_wk(torch.from_numpy(x)[None], torch.ones(1, length))[0]
    np.testing.assert_allclose(found, sentence(x.transpose(1, 0, 2)), rtol=0, atol=1e-9)


def test_single_precision_stays_and_agrees() -> None:
    x = states(11, 9, 64, seed=0).astype(np.float32)
    found = sbert_wk(torch.from_numpy(x)[None], torch.ones(1, 11))[0]
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, sentence(x.transpose(1, 0, 2).astype(np.float64)), rtol=0, atol=1e-6)


def test_what_stands_in_masked_places_does_not_matter() -> None:
    x = torch.from_numpy(np.stack([states(6, 5, 8, seed=s) for s in (0, 1)]))
    mask = torch.tensor([[False, True, True, True, False, False], [True, True, True, True, True, False]])
    spoiled = x.masked_fill(~mask[:, None, :, None], float("nan"))
    for i in range(2):
        by_hand = sentence(x[i][:, mask[i]].numpy().transpose(1, 0, 2))
        np.testing.assert_allclose(sbert_wk(spoiled, mask)[i], by_hand, rtol=0, atol=1e-9)


def test_layers_that_are_all_the_same_give_the_mean_of_the_tokens() -> None:
    tokens = states(5, 1, 8, seed=2)
    x = torch.from_numpy(np.repeat(tokens, 4, axis=0))[None]
    np.testing.assert_allclose(sbert_wk(x, torch.ones(1, 5))[0], tokens[0].mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("repeat", [1, 3, 5])
def test_a_repeated_layer_adds_nothing_to_a_context(repeat: int) -> None:
    x = states(4, 6, 16, seed=5)
    x[repeat] = x[repeat - 1]
    found = sbert_wk(torch.from_numpy(x)[None], torch.ones(1, 4))[0]
    np.testing.assert_allclose(found, sentence(x.transpose(1, 0, 2), by_least_squares), rtol=0, atol=1e-6)


def test_layers_of_more_scale_change_no_weight() -> None:
    x = torch.from_numpy(states(5, 6, 12, seed=8))[None]
    mask = torch.ones(1, 5)
    np.testing.assert_allclose(sbert_wk(1e3 * x, mask), 1e3 * sbert_wk(x, mask), rtol=1e-9)


@pytest.fixture(scope="module")
def bert(small_model: Callable[[str], Path]) -> Any:
    return load(small_model("bert"), exact=True)


def rows(loaded: Any, pooling: str | None, **options: Any) -> tuple[dict[Any, Any], Any]:
    batches = list(TextSource(loaded, open_corpus(TEXTS), batch_size=4, pooling=pooling, **options).batches())
    of = np.concatenate([b.rows.sequence for b in batches])
    return {layer: np.concatenate([b.layers[layer].numpy() for b in batches]) for layer in batches[0].layers}, of


@pytest.mark.parametrize("special_tokens", ["keep", "drop"])
def test_a_model_gives_one_row_for_each_text(bert: Any, special_tokens: str) -> None:
    tokens, of = rows(bert, None, special_tokens=special_tokens)
    found, order = rows(bert, "sbert-wk:0..-1", special_tokens=special_tokens)
    assert list(found) == ["0..3"]
    stacked = np.stack([tokens[layer] for layer in range(4)], axis=1)
    by_hand = [sentence(stacked[of == text]) for text in order]
    np.testing.assert_allclose(found["0..3"], by_hand, rtol=0, atol=1e-6)


def test_a_real_model_and_the_layers_of_the_published_code(minilm: Any) -> None:
    sentences = ["The cat sat on the mat.", "A much longer sentence, with commas, about nothing at all.", "Short"]
    (tokens,) = TextSource(minilm, open_corpus(sentences)).batches()
    (found,) = TextSource(minilm, open_corpus(sentences), pooling="sbert-wk").batches()
    stacked = np.stack([tokens.layers[i].double().numpy() for i in (4, 5, 6)], axis=1)
    by_hand = [sentence(stacked[tokens.rows.sequence == text]) for text in found.rows.sequence]
    np.testing.assert_allclose(found.layers["4..6"], by_hand, rtol=0, atol=1e-6)


def test_names() -> None:
    assert parse("sbert-wk").layers == "4..-1"  # of the published code
    assert parse("sbert-wk:1+2+5").layers == "1+2+5"
    assert parse("mean").least == 0


@pytest.mark.parametrize(
    ("pooling", "message"),
    [
        ("sbert-wk", "there is no layer '4': .* Name the layers of the pooling, such as sbert-wk:0..-1.$"),
        ("sbert-wk:1+2", "the pooling sbert-wk:1.2 needs at least 3 layers, got 1.2.$"),
        ("sbert-wk:2", "needs at least 3 layers, got 2.$"),
        ("sbert-wk:", "there is no pooling 'sbert-wk:'"),
        ("sbert-wk:3..0", "the layers '3..0' run from 3 to 0; name the lower one first.$"),
    ],
)
def test_layers_it_cannot_use_are_refused_in_one_sentence(bert: Any, pooling: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TextSource(bert, open_corpus(TEXTS), pooling=pooling)
