"""What may be wrong with the files of a model, in one sentence; and GGUF weights as plain numbers."""

from __future__ import annotations

from typing import Any

from isotrope.errors import InputError


def unpacked() -> dict[str, Any]:
    """How to ask for a GGUF file's weights as plain numbers, whatever kernels for packed ones are installed."""
    import transformers

    kind = getattr(transformers, "GgufConfig", None)  # older ones know no other way
    return {} if kind is None else {"quantization_config": kind(dequantize=True)}


def forget_packing(network: Any) -> None:
    """Make a model whose weights were unpacked a plain one, which can be saved."""
    network.hf_quantizer = None
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config


def check_weights(place: str, info: dict[str, Any]) -> None:
    """Refuse weights with holes, which transformers would fill with random numbers; no hidden state needs a pooler."""
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f"the weights of {place!r} lack {len(missing):,} that the model needs (such as {missing[0]}); "
            "check that config.json and the weights belong together."
        )


def check_tokenizer(place: str, tokenizer: Any) -> None:
    """Refuse a tokenizer without words: transformers makes one up where its files are missing."""
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)) + 1:  # T5's made-up one knows a space too
        raise InputError(
            f"the model {place!r} has no tokenizer with words; add its tokenizer files, such as tokenizer.json."
        )


def line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__


def explain(place: str, error: Exception, local: bool) -> str:
    """One sentence for what went wrong while loading."""
    text = line(error)
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"the model {place!r} wants to run code of its own, which is refused; "
            "read that code, and if you trust it add --trust-remote-code."
        )
    if type(error).__name__ == "SafetensorError":
        return f"the weights of {place!r} are damaged or cut short ({text}); download them again."
    check = "the files in it" if local else "its name, its revision and the network"
    return f"the model {place!r} cannot be loaded ({text}); check {check}."
