"""Models that lose their last blocks, and one that cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.integrations.transformer_module import drop_blocks
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import Loaded, load
from testkit.models import ONE_STACK, save_model

IDS = np.array([[2, 5, 9, 7, 3], [2, 6, 3, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=bool)


def states(loaded: Loaded) -> list[Any]:
    return [state.numpy() for state in compute_hidden_states(loaded, IDS, MASK)[0]]


@pytest.mark.parametrize("state", [0, 1, 2, 3])
@pytest.mark.parametrize("family", ONE_STACK)
def test_states_up_to_the_one_that_is_wanted_stay(tmp_path: Path, family: str, state: int) -> None:
    loaded = load(save_model(tmp_path, family))
    before = states(loaded)
    last = drop_blocks(loaded, state, IDS, MASK)
    after = states(loaded)
    norm = family in ("gpt2", "llama")  # after the last block, and after no other
    assert last == len(after) - 1 == loaded.model.config.num_hidden_layers == min(3, max(1, state + norm))
    for i in range(state + 1):
        np.testing.assert_array_equal(after[i], before[i])


def test_lists_of_the_config_are_cut_too(tmp_path: Path) -> None:
    from transformers import Qwen3Config, Qwen3Model

    kinds = ["full_attention", "sliding_attention"] * 3
    size = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
    }
    window = {"layer_types": kinds, "use_sliding_window": True, "sliding_window": 2}
    config = Qwen3Config(vocab_size=22, num_hidden_layers=6, use_cache=False, **size, **window)
    loaded = Loaded(Qwen3Model(config).eval(), None, "qwen", None, "cpu", [])
    before = states(loaded)
    assert drop_blocks(loaded, 2, IDS, MASK) == 3
    assert loaded.model.config.layer_types == kinds[:3]
    loaded.model.save_pretrained(tmp_path)
    again = Loaded(Qwen3Model.from_pretrained(tmp_path).eval(), None, "qwen", None, "cpu", [])
    np.testing.assert_array_equal(states(again)[2], before[2])


def test_a_model_whose_first_layers_feel_the_last_is_left_whole(tmp_path: Path) -> None:
    loaded = load(save_model(tmp_path, "bert"))
    blocks = loaded.model.encoder
    loaded.model.embeddings.register_forward_hook(lambda module, args, out: out * len(blocks.layer))
    before = states(loaded)
    assert drop_blocks(loaded, 1, IDS, MASK) == 3 == loaded.model.config.num_hidden_layers == len(blocks.layer)
    for old, new in zip(before, states(loaded), strict=True):
        np.testing.assert_array_equal(new, old)
