"""The transformer of a written embedder: without blocks that no wanted layer needs, saved as its first module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.models.environment import silence_transformers
from isotrope.sources.models.hidden_states import Ids, Mask, compute_hidden_states, in_block
from isotrope.sources.models.load import Loaded
from isotrope.storage.files import write_text

#: What a tokenizer is asked for, and need not give.
_TYPES = "return_token_type_ids"


def write_transformer(
    folder: Path, loaded: Loaded, *, max_length: int, every_layer: bool = False, unpad: bool = True
) -> None:
    """Write the files of the module `Transformer`, and the list of modules with it alone; changes the loaded model.

    Texts are padded on the right: where left padding moves a text, absolute positions would move with it. The decoder
    of an encoder-decoder model is left out.

    Args:
        folder: where the files go.
        loaded: model and tokenizer.
        max_length: tokens after which texts are cut.
        every_layer: whether the states of all layers go to the next module.
        unpad: whether flash attention may join texts without padding, which `WordWeights` does not know.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    model.config.output_hidden_states = every_layer
    tokenizer.model_max_length = max_length
    if tokenizer.pad_token is None:
        tokenizer.pad_token = _find_pad_token(loaded)
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("decoder.")}
    with silence_transformers():
        model.save_pretrained(folder, state_dict=weights if loaded.encoder_decoder else None)
        tokenizer.save_pretrained(folder)
    config: dict[str, Any] = {
        "transformer_task": "feature-extraction",
        # Said outright: else texts for a chat model would be put into its chat template.
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": "token_embeddings",
        "processing_kwargs": {"text": {"padding_side": "right", _TYPES: False, "return_attention_mask": True}},
    }
    if not unpad:
        config["unpad_inputs"] = False
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    whole = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"}
    write_text(folder / "sentence_bert_config.json", json.dumps(config, indent=2))
    write_text(folder / "config_sentence_transformers.json", json.dumps(whole, indent=2))
    write_text(folder / "modules.json", json.dumps([module], indent=2))


def _find_pad_token(loaded: Loaded) -> str:
    """A special token to fill up short texts with: which one does not matter, because of the mask."""
    token = loaded.tokenizer.eos_token or next(iter(loaded.tokenizer.all_special_tokens), None)
    if token is None:
        raise InputError(f"the tokenizer of {loaded.name} has no special token to fill up short texts with; add one.")
    return str(token)


def drop_blocks(loaded: Loaded, state: int, ids: Ids, mask: Mask) -> int:
    """Take away, in place, the blocks that no hidden state up to `state` needs; the number of the last state left.

    After a model's last block there may be a norm, which other blocks' outputs do not see: then one block more is kept.
    No block is dropped where the states would not stay the same to the last bit. A model of encoder and decoder loses
    blocks of its encoder.

    Args:
        loaded: the model.
        state: the number of the last hidden state that is wanted.
        ids: tokens to compare the states on, (b, t).
        mask: which of them are tokens, (b, t).
    """
    import torch

    before = compute_hidden_states(loaded, ids, mask)[0]
    total = len(before) - 1
    if getattr(loaded.model.config, "num_hidden_layers", None) != total:
        return total
    whole = _BlockList(loaded.model, total)
    for count in range(max(state, 1), min(state + 2, total)):
        whole.keep(count)
        try:
            after = compute_hidden_states(loaded, ids, mask)[0]
        except Exception:  # nosec B112  # whatever a model raises that cannot do without its last blocks
            continue
        if len(after) == count + 1 and all(map(torch.equal, before[: state + 1], after)):
            return count
    whole.keep(total)
    return total


class _BlockList:
    """A model's numbered blocks, and the lists in its config that have an entry for each."""

    def __init__(self, model: Any, total: int) -> None:
        from torch.nn import ModuleList

        self.config = model.config
        self.modules = [
            (model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], module)
            for name, module in model.named_modules()
            if isinstance(module, ModuleList) and len(module) == total and not in_block(name)
        ]
        self.lists = {
            name: list(value)
            for name, value in vars(self.config).items()
            if "layer" in name and isinstance(value, list) and len(value) == total
        }

    def keep(self, count: int) -> None:
        """The first blocks alone."""
        self.config.num_hidden_layers = count
        for parent, name, module in self.modules:
            setattr(parent, name, module[:count])
        for name, value in self.lists.items():
            setattr(self.config, name, value[:count])
