"""CharacterBERT and MANTa: networks of the published structure, read through `isotrope.Loaded`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isotrope
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.studies.model_class import find_class
from testkit.character_networks import CharacterTokenizer, make_character_bert, make_manta

TEXTS = ["the cat sat on a mat", "dogs", "Grüße aus dem Süden", "old dogs ran"]


@pytest.fixture(scope="module")
def character_bert() -> Loaded:
    return Loaded(make_character_bert(), CharacterTokenizer(), "character-bert")


@pytest.fixture(scope="module")
def manta() -> Loaded:
    from transformers import ByT5Tokenizer

    return Loaded(make_manta(), ByT5Tokenizer(extra_ids=0), "manta")


def test_words_are_spelled_in_bytes_between_marks() -> None:
    spelled = CharacterTokenizer()(["ab é"])
    pad = [261] * 12
    assert spelled["input_ids"][0][1] == ([259, 98, 99, 260, *pad])[:12]
    assert spelled["input_ids"][0][2] == ([259, 195 + 1, 169 + 1, 260, *pad])[:12]
    assert spelled["input_ids"][0][0] == ([259, 257, 260, *pad])[:12]
    assert spelled["special_tokens_mask"] == [[1, 0, 0, 1]]


def test_the_network_of_characters_by_hand(character_bert: Loaded) -> None:
    """Convolutions, maxima, highway layers and the projection of one word, by numpy."""
    words = character_bert.model.words
    weights = {name: value.detach().double().numpy() for name, value in words.named_parameters()}
    ids = CharacterTokenizer.spell("cat")
    letters = weights["characters.weight"][ids]
    found = []
    for number, size in enumerate((1, 2, 3)):
        kernel, bias = weights[f"convolutions.{number}.weight"], weights[f"convolutions.{number}.bias"]
        places = [np.einsum("ock,kc->o", kernel, letters[i : i + size]) + bias for i in range(len(ids) - size + 1)]
        found.append(np.maximum(np.max(places, axis=0), 0))
    row = np.concatenate(found)
    for number in range(2):
        both = weights[f"highways.{number}.weight"] @ row + weights[f"highways.{number}.bias"]
        new, gate = np.maximum(both[:16], 0), 1 / (1 + np.exp(-both[16:]))
        row = gate * row + (1 - gate) * new
    row = weights["projection.weight"] @ row + weights["projection.bias"]
    with torch.inference_mode():
        made = words(torch.tensor([[ids]]))[0, 0].numpy()
    np.testing.assert_allclose(made, row, rtol=1e-4, atol=1e-6)


def test_rows_of_character_bert_are_words(character_bert: Loaded) -> None:
    assert find_class(character_bert) == "character"
    source = Input(model=character_bert, text=TEXTS, in_order=True).open()
    assert source.layers == [0, 1, 2]
    (batch,) = source.batches()
    for i, text in enumerate(TEXTS):
        mine = batch.rows.sequence == i
        assert mine.sum() == len(text.split()) + 2
        ids = torch.tensor(CharacterTokenizer()([text])["input_ids"])
        with torch.inference_mode():
            states = character_bert.model(ids, output_hidden_states=True).hidden_states
        for label in source.layers:
            expected = states[label][0].numpy()
            np.testing.assert_allclose(batch.layers[label].numpy()[mine], expected, rtol=1e-3, atol=1e-5)


def test_frontiers_and_blocks_of_manta_by_hand(manta: Loaded) -> None:
    """Bytes belong to the blocks before which their frontiers put them, by a normal law."""
    model = manta.model
    frontiers = torch.tensor([[0.0, 1.0, 0.0, 0.0, 1.0, 0.5]])
    share = model.assign_blocks(frontiers)[0].numpy()
    assert share.shape == (6, 3)
    assert share.argmax(-1).tolist() == [0, 0, 1, 1, 1, 2]
    np.testing.assert_allclose(share.sum(-1), 1.0, rtol=1e-6)
    expected = np.exp(-((np.arange(3) - 2.0) ** 2) / (2 * 0.26))  # two frontiers before, variance 1/4 and 0.01
    np.testing.assert_allclose(share[5], expected / expected.sum(), rtol=1e-4)


def test_rows_of_manta_are_blocks_and_bytes(manta: Loaded) -> None:
    """The encoder has a row for each block, of which there are fewer than bytes; the decoder one for each byte."""
    assert find_class(manta) == "character"
    source = Input(model=manta, text=TEXTS, in_order=True).open()
    names = ["encoder.0", "encoder.1", "encoder.2", "decoder.0", "decoder.1", "decoder.2"]
    assert list(source.layer_names.values()) == names
    rows: dict[int, list[int]] = {}
    for batch in source.batches():
        for label, found in batch.layers.items():
            rows.setdefault(label, []).append(len(found))
    for i, text in enumerate(TEXTS):
        ids = torch.tensor([[*(byte + 3 for byte in text.encode()), 1]])
        blocks = manta.model.pool_blocks(ids).shape[1]
        assert 1 <= blocks < ids.shape[1]
        assert rows[0][i] == blocks
        assert rows[3][i] == ids.shape[1]


def test_both_are_scanned(character_bert: Loaded, manta: Loaded) -> None:
    for loaded in (character_bert, manta):
        findings = isotrope.scan(model=loaded, text=TEXTS, measures="mean_cosine")
        assert all(-1 <= reading.value <= 1 for reading in findings.readings)
        assert len(findings.layers) == len(findings.readings)
