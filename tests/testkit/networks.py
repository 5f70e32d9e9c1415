"""Small random networks of real classes, and batches with padding for them."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import transformers

_WIDE = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
_DEEP = {"vocab_size": 60, "max_position_embeddings": 64}

#: Configs by family; all have three blocks, or three and two.
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", {**_WIDE, **_DEEP}),
    "albert": ("AlbertConfig", {**_WIDE, **_DEEP, "embedding_size": 8}),
    "roberta": ("RobertaConfig", {**_WIDE, **_DEEP, "pad_token_id": 1}),
    "distilbert": ("DistilBertConfig", {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24, **_DEEP}),
    "mpnet": ("MPNetConfig", {**_WIDE, **_DEEP}),
    "electra": ("ElectraConfig", {**_WIDE, **_DEEP, "embedding_size": 8}),
    "deberta": ("DebertaConfig", {**_WIDE, **_DEEP, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "deberta-v2": ("DebertaV2Config", {**_WIDE, **_DEEP}),
    "modernbert": ("ModernBertConfig", {**_WIDE, **_DEEP, "pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2}),
    "gpt2": ("GPT2Config", {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 60, "n_positions": 64}),
    "llama": ("LlamaConfig", {**_WIDE, **_DEEP, "num_key_value_heads": 1}),
    "qwen3": ("Qwen3Config", {**_WIDE, **_DEEP, "num_key_value_heads": 1, "head_dim": 8}),
    "mamba": ("MambaConfig", {"hidden_size": 16, "num_hidden_layers": 3, "vocab_size": 60}),
    "xlnet": ("XLNetConfig", {"d_model": 16, "n_layer": 3, "n_head": 2, "d_inner": 24, "vocab_size": 60}),
    "t5": (
        "T5Config",
        {
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 24,
            "num_layers": 3,
            "num_decoder_layers": 2,
            "num_heads": 2,
            "vocab_size": 60,
        },
    ),
    "bart": (
        "BartConfig",
        {
            "d_model": 16,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            **_DEEP,
        },
    ),
    "whisper": (
        "WhisperConfig",
        {
            "d_model": 16,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            "vocab_size": 60,
            "num_mel_bins": 8,
            "max_source_positions": 10,
            "max_target_positions": 20,
            "pad_token_id": 0,
            "decoder_start_token_id": 1,
        },
    ),
    "vit": ("ViTConfig", {**_WIDE, "image_size": 32, "patch_size": 8}),
    "wav2vec2": ("Wav2Vec2Config", {**_WIDE, "conv_dim": (8,) * 7, "num_conv_pos_embedding_groups": 2}),
}

#: The families whose blocks end in a norm.
NORM_LAST = ("bert", "albert", "roberta", "distilbert", "mpnet", "electra", "deberta", "deberta-v2")


def config(family: str, **changes: Any) -> Any:
    name, options = CONFIGS[family]
    ids = {} if family in ("vit", "wav2vec2") else {"bos_token_id": 1, "eos_token_id": 2}
    return getattr(transformers, name)(**{**ids, **options, **changes})


def network(family: str, auto: str = "AutoModel", **changes: Any) -> Any:
    """A small random model with weights large enough not to hide mistakes, in evaluation mode."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(transformers, auto).from_config(config(family, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model.eval()


def batch(lengths: tuple[int, ...] = (7, 4, 1), longest: int = 7, *, left: bool = False) -> dict[str, torch.Tensor]:
    """Token ids and their mask, padded at the end, or at the beginning."""
    rng = torch.Generator().manual_seed(1)
    ids, mask = (
        torch.zeros(len(lengths), longest, dtype=torch.long),
        torch.zeros(len(lengths), longest, dtype=torch.long),
    )
    for i, n in enumerate(lengths):
        at = slice(longest - n, longest) if left else slice(0, n)
        ids[i, at], mask[i, at] = torch.randint(5, 60, (n,), generator=rng), 1
    return {"input_ids": ids, "attention_mask": mask}
