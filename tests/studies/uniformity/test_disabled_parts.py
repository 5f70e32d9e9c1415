"""Blocks without skip connections and MLPs against the same modules called one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.models.load import load
from isotrope.studies.uniformity.disabled_parts import disable_parts
from testkit.models import save_model

IDS = torch.tensor([[2, 5, 6, 7, 3]])


def states(model: Any) -> list[torch.Tensor]:
    with torch.inference_mode():
        return list(model(input_ids=IDS, attention_mask=torch.ones_like(IDS), output_hidden_states=True).hidden_states)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(save_model(tmp_path_factory.mktemp("bert"), "bert"), device="cpu").model


@pytest.mark.parametrize(("skip", "mlp"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_block_that_norms_after(bert: Any, skip: bool, mlp: bool) -> None:
    raw: list[torch.Tensor] = []
    block = bert.encoder.layer[0]
    hook = block.attention.output.dense.register_forward_hook(lambda _, __, out: raw.append(out.clone()))
    with disable_parts(bert, skip=skip, mlp=mlp):
        x, found, *_ = states(bert)
    hook.remove()
    with torch.inference_mode():
        middle = block.attention.output.LayerNorm(raw[0] if skip else raw[0] + x)
        added = torch.zeros_like(middle) if mlp else block.output.dense(block.intermediate(middle))
        expected = block.output.LayerNorm(added + (0.0 if skip and not mlp else middle))
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_model_is_as_before(bert: Any) -> None:
    before = states(bert)
    with disable_parts(bert, skip=True, mlp=True):
        assert not torch.allclose(states(bert)[-1], before[-1])
    assert all(torch.equal(a, b) for a, b in zip(before, states(bert), strict=True))


def test_a_block_that_norms_before(tmp_path: Path) -> None:
    model = load(save_model(tmp_path / "llama", "llama"), device="cpu").model
    raw: list[torch.Tensor] = []
    block = model.layers[0]
    hook = block.self_attn.o_proj.register_forward_hook(lambda _, __, out: raw.append(out.clone()))
    with disable_parts(model, skip=True, mlp=True):
        alone = states(model)[1]
    with disable_parts(model, skip=True):
        with_mlp = states(model)[1]
    hook.remove()
    assert torch.allclose(alone, raw[0], atol=1e-6)
    with torch.inference_mode():
        assert torch.allclose(with_mlp, block.mlp(block.post_attention_layernorm(raw[0])), atol=1e-6)


def test_blocks_of_other_kinds_are_refused(tmp_path: Path) -> None:
    model = load(save_model(tmp_path / "t5", "t5"), device="cpu").model
    with pytest.raises(InputError, match="not known"), disable_parts(model, skip=True):
        pass
