"""Blocks of encoder-decoders, vision transformers and speech models on their own do what they do in their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded, load
from isotrope.studies.anisotropy.biased_block import Inputs, apply_bias
from isotrope.studies.model_blocks import list_sides, make_fresh_block, take_block
from testkit.media_models import IMAGES, SOUNDS, random_model, save_image_model
from testkit.models import save_model
from testkit.networks import network

LENGTH = 6


def marian() -> Any:
    from transformers import MarianConfig

    sizes = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids = {"vocab_size": 60, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
    return random_model(MarianConfig(**sizes, **heads, **ids, scale_embedding=True, max_position_embeddings=64))


@pytest.mark.parametrize("family", ["t5", "bart", "marian"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("number", [0, 1])
def test_blocks_of_encoder_and_decoder(family: str, side: str, number: int) -> None:
    """The decoder reads no encoder here, so that its cross-attention is left out."""
    loaded = Loaded(marian() if family == "marian" else network(family), None, family)
    assert list_sides(loaded) == ["encoder", "decoder"]
    block = take_block(loaded, number, side)
    assert block.name == f"{family}, {side} block {number}"
    stack = getattr(loaded.model, f"get_{side}")()
    ids = torch.zeros((1, LENGTH), dtype=torch.long)  # the position bias of T5 and the masks depend on the length alone
    ids[0] = torch.arange(3, 3 + LENGTH)
    with torch.inference_mode():
        states = stack(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True).hidden_states
    seen = block(states[number][0])
    expected = states[number + 1][0]
    if number + 1 == len(states) - 1 and hasattr(stack, "final_layer_norm"):
        seen.output = stack.final_layer_norm(seen.output)  # T5's last state is after its final norm
    assert torch.allclose(seen.output, expected, atol=1e-4)
    assert seen.softmax.shape == (2, LENGTH, LENGTH)
    hidden = torch.triu(torch.ones(LENGTH, LENGTH), 1).bool()
    assert bool((seen.softmax[:, hidden] == 0).all()) == (side == "decoder")


@pytest.mark.parametrize("name", ["vit", "deit", "beit", "clip"])
def test_blocks_of_vision_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    loaded = load(save_image_model(tmp_path / name, name), device="cpu", modality="image")
    pixels = torch.randn((1, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        states = loaded.model(pixel_values=pixels, output_hidden_states=True).hidden_states
    block = take_block(loaded, 1, table=states[0][0])
    rows = IMAGES[name][2][0][0]
    assert (block.min_rows, block.max_rows) == (rows, rows)
    assert torch.allclose(block(states[1][0]).output, states[2][0], atol=1e-4)


@pytest.mark.parametrize("name", ["wav2vec2", "hubert"])
def test_blocks_of_speech_encoders(name: str) -> None:
    import transformers

    kind, options = SOUNDS[name]
    loaded = Loaded(random_model(getattr(transformers, kind)(**options)), None, name, modality="audio")
    with torch.inference_mode():
        sound = torch.randn((1, 1_000), generator=torch.Generator().manual_seed(0))
        states = loaded.model(input_values=sound, output_hidden_states=True).hidden_states
    block = take_block(loaded, 0, table=states[0][0])
    assert torch.allclose(block(states[0][0]).output, states[1][0], atol=1e-4)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_blocks_of_whisper(side: str) -> None:
    import transformers

    loaded = Loaded(
        random_model(transformers.WhisperConfig(**SOUNDS["whisper"][1]), "AutoModelForSpeechSeq2Seq"),
        None,
        "whisper",
        modality="audio",
    )
    stack = getattr(loaded.model, f"get_{side}")()
    given = (
        {"input_features": torch.randn((1, 8, 100), generator=torch.Generator().manual_seed(0))}
        if side == "encoder"
        else {"input_ids": torch.arange(5, 5 + LENGTH)[None], "attention_mask": torch.ones((1, LENGTH))}
    )
    with torch.inference_mode():
        states = stack(**given, output_hidden_states=True).hidden_states
    block = take_block(loaded, 0, side, table=states[0][0])
    assert torch.allclose(block(states[0][0]).output, states[1][0], atol=1e-4)


def test_the_embeddings_of_bart_are_scaled_as_its_blocks_get_them() -> None:
    model = network("bart", scale_embedding=True)
    block = take_block(Loaded(model, None, "bart"), 0)
    assert torch.allclose(block.table, model.shared.weight.detach() * 4.0)  # the root of the width


def test_inputs_have_the_length_that_a_block_takes(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    loaded = load(save_image_model(tmp_path / "beit", "beit"), device="cpu", modality="image")
    table = torch.randn((40, 16), generator=torch.Generator().manual_seed(0))
    block = take_block(loaded, 0, table=table)
    inputs = Inputs.draw(block, 2, 512, 0, 0)
    assert inputs.rows.shape == (2, 17, 16)
    assert Inputs.draw(block, 2, 4, 0, 0).rows.shape == (2, 17, 16)
    (record,) = apply_bias(block, inputs, [1.0])
    assert record["output_norm"] > 0
    assert Inputs.draw(make_fresh_block(64, vocabulary=50), 1, 600, 0, 0).rows.shape == (1, 512, 64)


def test_what_cannot_be_taken_alone(tmp_path: Path) -> None:
    albert = load(save_model(tmp_path / "albert", "albert"), device="cpu")
    with pytest.raises(InputError, match=r"the blocks of .*albert cannot be given 8-dimensional rows"):
        take_block(albert, 0)
    with pytest.raises(InputError, match=r"there is no block 7: t5 has blocks 0 to 1\."):
        take_block(Loaded(network("t5"), None, "t5"), 7, "decoder")
