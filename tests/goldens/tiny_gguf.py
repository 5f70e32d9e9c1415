"""A tiny Llama model as a GGUF file: random weights from a seed, blocks quantized to 8 bits, a byte-level tokenizer."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

BLOCKS, WIDTH, HEADS, INNER = 2, 32, 2, 64


def write_gguf(path: Path, text: str) -> Path:
    """Write the model to a file; its tokenizer knows all bytes and the first pairs of letters of a text."""
    import gguf

    tokens, merges = _vocabulary(text)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(BLOCKS)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    for name, weights in _weights(len(tokens)).items():
        if weights.ndim == 1:
            writer.add_tensor(name, weights)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary(text: str) -> tuple[list[str], list[str]]:
    """Tokens and merges: an end mark, all bytes, and 60 pairs of letters."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = [pair for pair in pairwise(text) if "".join(pair).isalpha()]
    pairs = list(dict.fromkeys(letters))[:60]
    tokens = ["<|endoftext|>", *sorted(ByteLevel.alphabet()), *("".join(pair) for pair in pairs)]
    return tokens, [" ".join(pair) for pair in pairs]


def _weights(vocabulary: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (vocabulary, WIDTH), "output_norm": (WIDTH,)}
    for i in range(BLOCKS):
        shapes |= {f"blk.{i}.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        shapes |= {f"blk.{i}.{part}_norm": (WIDTH,) for part in ("attn", "ffn")}
        shapes |= {f"blk.{i}.ffn_{part}": (INNER, WIDTH) for part in ("gate", "up")}
        shapes[f"blk.{i}.ffn_down"] = (WIDTH, INNER)
    return {
        f"{name}.weight": (rng.normal(size=shape) * 0.3 + (len(shape) == 1)).astype(np.float32)
        for name, shape in shapes.items()
    }
