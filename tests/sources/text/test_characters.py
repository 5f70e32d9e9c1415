"""Models over characters and bytes, and models whose layers change the length of a sequence."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded, load
from testkit.media_models import save_character_model

TEXTS = ["a", "Grüße aus dem Süden", "the cat sat on a mat", "日本語"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = save_character_model(tmp_path_factory.mktemp(name), name)
        return made[name]

    return make


def test_canine_layers_of_characters_and_of_four_at_a_time(model: Callable[[str], Path]) -> None:
    import torch
    from transformers import CanineModel

    source = Input(model=str(model("canine")), text=TEXTS, in_order=True, batch_size=2).open()
    # the embedding and one local block over characters, the embedding and two blocks over fours, the characters again
    assert source.layers == list(range(7))
    parts = list(source.batches())
    assert len(parts) == 2 * 2
    network = CanineModel.from_pretrained(model("canine")).eval()
    for batch in parts:
        fours = batch.rows.token is None
        assert set(batch.layers) == ({2, 3, 4} if fours else {0, 1, 5, 6})
        first, second = np.unique(batch.rows.sequence)
        longest = max(len(TEXTS[int(i)]) + 2 for i in (first, second))
        width = math.ceil(longest / 4) * 4  # a whole number of fours
        for number in (int(first), int(second)):
            points = [0xE000, *map(ord, TEXTS[number]), 0xE001]
            mine = batch.rows.sequence == number
            count = math.ceil(len(points) / 4) if fours else len(points)
            assert mine.sum() == count
            if not fours:
                assert batch.rows.token[mine].tolist() == points
                assert batch.rows.special[mine].tolist() == [True, *[False] * len(TEXTS[number]), True]
            ids = torch.tensor([points + [0] * (width - len(points))])
            mask = torch.tensor([[1] * len(points) + [0] * (width - len(points))])
            with torch.inference_mode():
                states = network(ids, attention_mask=mask, output_hidden_states=True).hidden_states
            for label, rows in batch.layers.items():
                wanted = states[label][0, :count].numpy()
                np.testing.assert_allclose(rows.numpy()[mine], wanted, rtol=1e-3, atol=1e-4)


def test_canine_layers_of_different_lengths_are_not_averaged(model: Callable[[str], Path]) -> None:
    loaded = load(model("canine"))
    with pytest.raises(InputError, match=r"the layers 0\+3 of .* have different lengths; name one"):
        Input(model=loaded, text=TEXTS, layers="0+3", pooling="mean").open()
    (batch,) = Input(model=loaded, text=TEXTS, layers="3", pooling="mean", in_order=True).open().batches()
    (rows,) = Input(model=loaded, text=TEXTS, layers="3", in_order=True).open().batches()
    for i in range(len(TEXTS)):
        wanted = rows.layers[3].numpy()[rows.rows.sequence == i].mean(axis=0)
        np.testing.assert_allclose(batch.layers[3].numpy()[i], wanted, rtol=1e-4, atol=1e-5)


def test_byt5_tokens_are_bytes_and_encoder_and_decoder_one_sequence_of_layers(model: Callable[[str], Path]) -> None:
    source = Input(model=str(model("byt5")), text=TEXTS, in_order=True).open()
    names = ["encoder.0", "encoder.1", "encoder.2", "decoder.0", "decoder.1", "decoder.2"]
    assert list(source.layer_names.values()) == names
    encoder, decoder = source.batches()
    for i, text in enumerate(TEXTS):
        held = [byte + 3 for byte in text.encode()]  # three special ids come before the bytes
        assert encoder.rows.token[encoder.rows.sequence == i].tolist() == [*held, 1]
        assert decoder.rows.token[decoder.rows.sequence == i].tolist() == [0, *held]


class Blocks:
    """How a MANTa-style model looks from outside: bytes in, fewer rows than bytes in the middle, at no fixed rate."""

    @staticmethod
    def make() -> Any:
        import torch
        from transformers import PreTrainedConfig, PreTrainedModel
        from transformers.modeling_outputs import BaseModelOutput

        class Config(PreTrainedConfig):  # type: ignore[misc]
            model_type = "merging"

        class Merging(PreTrainedModel):  # type: ignore[misc]
            config_class = Config

            def __init__(self, config: Any) -> None:
                super().__init__(config)
                self.table = torch.nn.Embedding(300, 8)
                self.post_init()

            def forward(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
                fine = self.table(input_ids)
                short = fine[:, : int(0.6 * fine.shape[1]) + 1]
                return BaseModelOutput(last_hidden_state=short, hidden_states=(fine, short))

        torch.manual_seed(0)
        return Merging(Config()).eval()


class Speller:
    """A tokenizer whose tokens are words of five characters: [CLS] and [SEP] around them, 0 where a word is shorter."""

    pad_token_id, model_max_length = 0, 64

    def __call__(self, texts: list[str], **_: Any) -> dict[str, Any]:
        spelled = [["\x01", *text.split(), "\x02"] for text in texts]
        special = [[1, *[0] * len(text.split()), 1] for text in texts]
        return {"input_ids": [[self.ids(w) for w in words] for words in spelled], "special_tokens_mask": special}

    @staticmethod
    def ids(word: str) -> list[int]:
        return [*(ord(c) % 100 for c in word[:5]), *[0] * (5 - len(word[:5]))]


def spelled_bert() -> Any:
    """How CharacterBERT looks from outside: ids (b, t, c) of characters in, made one row a word, then BERT's blocks."""
    import torch
    from transformers import BertConfig, BertModel

    class Spelled(BertModel):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.letters = torch.nn.Embedding(100, config.hidden_size)

        def forward(self, input_ids: Any, attention_mask: Any, **options: Any) -> Any:
            rows = self.letters(input_ids).sum(dim=2)
            return super().forward(inputs_embeds=rows, attention_mask=attention_mask, **options)

    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    return Spelled(BertConfig(**small, max_position_embeddings=64)).eval()


def test_words_that_are_spelled_in_characters_are_rows_without_token_types() -> None:
    import torch

    texts = ["the cat sat on a mat", "dogs", "old dogs ran"]
    network = spelled_bert()
    source = Input(model=Loaded(network, Speller(), "spelled"), text=texts, in_order=True).open()
    assert source.layers == [0, 1, 2]  # the embedding and two blocks
    (batch,) = source.batches()
    assert batch.rows.token is None
    for i, text in enumerate(texts):
        words = ["\x01", *text.split(), "\x02"]
        mine = batch.rows.sequence == i
        assert batch.rows.special[mine].tolist() == [True, *[False] * len(text.split()), True]
        letters = network.letters.weight.detach()
        rows = torch.stack([sum(letters[n] for n in Speller.ids(word)) for word in words])[None]  # type: ignore[arg-type]
        with torch.inference_mode():
            wanted = super(type(network), network).forward(inputs_embeds=rows, output_hidden_states=True).hidden_states
        for label in source.layers:
            np.testing.assert_allclose(
                batch.layers[label].numpy()[mine], wanted[label][0].numpy(), rtol=1e-3, atol=1e-5
            )


def test_rows_at_no_fixed_rate_are_taken_one_text_at_a_time(model: Callable[[str], Path]) -> None:
    loaded = Loaded(Blocks.make(), load(model("byt5")).tokenizer, "merging")
    source = Input(model=loaded, text=TEXTS, in_order=True).open()
    parts = list(source.batches())
    assert len(parts) == 2 * len(TEXTS)
    for i, text in enumerate(TEXTS):
        fine, short = parts[2 * i : 2 * i + 2]
        length = len(text.encode()) + 1
        assert fine.layers[0].shape == (length, 8)
        assert short.layers[1].shape == (int(0.6 * length) + 1, 8)
        assert short.rows.token is None
        np.testing.assert_array_equal(short.layers[1].numpy(), fine.layers[0].numpy()[: len(short.rows)])
