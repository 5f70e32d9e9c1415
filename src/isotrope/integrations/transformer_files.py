"""Model and tokenizer as the first module of a saved sentence-transformers model, which runs them as we do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.models.environment import silence_transformers
from isotrope.sources.models.load import Loaded
from isotrope.storage.files import write_text

#: What a tokenizer is asked for, and need not give.
_TYPES = "return_token_type_ids"


def write_transformer(
    folder: Path, loaded: Loaded, *, max_length: int, every_layer: bool = False, unpad: bool = True
) -> None:
    """Write the files of the module `Transformer`, and the list of modules with it alone; changes the loaded model.

    Texts are cut at max_length and padded on the right: where left padding moves a text, absolute positions would move
    with it. every_layer: give the states of all layers to the next module. unpad: let flash attention join texts
    without padding, which `WordWeights` does not know. The decoder of an encoder-decoder model is left away.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    model.config.output_hidden_states = every_layer
    tokenizer.model_max_length = max_length
    if tokenizer.pad_token is None:
        tokenizer.pad_token = _pad_token(loaded)
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


def _pad_token(loaded: Loaded) -> str:
    """A special token to fill up short texts with: which one does not matter, because of the mask."""
    token = loaded.tokenizer.eos_token or next(iter(loaded.tokenizer.all_special_tokens), None)
    if token is None:
        raise InputError(f"the tokenizer of {loaded.name} has no special token to fill up short texts with; add one.")
    return str(token)
