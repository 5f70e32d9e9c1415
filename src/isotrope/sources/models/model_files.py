"""What may be wrong with the files of a model, in one sentence; and GGUF weights as plain numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, IsotropeError, MissingExtra, describe_error

#: Layers that a config may ask for at most, and those that it may have whatever weights there are: some models use one
#: set of weights for all of their layers. Experts of a layer, which often share tensors.
_MOST_LAYERS, _FEW_LAYERS, _MOST_EXPERTS = 1_000, 100, 10_000

#: Names of configs' fields that are numbers of layers or of experts, each of which is built by itself.
_COUNTS = re.compile(r"(?:.*_)?(?:layers?|blocks|depths?|experts)")


def dequantize_options() -> dict[str, Any]:
    """How to ask for a GGUF file's weights as plain numbers, whatever kernels for packed ones are installed."""
    import transformers

    kind = getattr(transformers, "GgufConfig", None)  # older ones know no other way
    return {} if kind is None else {"quantization_config": kind(dequantize=True)}


def forget_packing(network: Any) -> None:
    """Make a model whose weights were unpacked a plain one, which can be saved."""
    network.hf_quantizer = None
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config


def check_config_file(folder: Path) -> None:
    """Refuse a folder whose config.json asks for far more layers than there are weights, before they are built."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):  # which loading will tell
        return
    check_config(str(folder), config, _count_tensors(folder))


def check_config(place: str, config: Any, tensors: int | None = None) -> None:
    """Refuse a config with more layers than the number of tensors in the weights explains, where that is known.

    >>> check_config("org/model", {"text_config": {"num_hidden_layers": 10**7}})
    Traceback (most recent call last):
    isotrope.errors.InputError: the config of 'org/model' has num_hidden_layers 10,000,000, expected at most 1,000; ...
    """
    layers = _MOST_LAYERS if tensors is None else min(_MOST_LAYERS, max(_FEW_LAYERS, tensors))
    for name, count in _counts(config):
        most = _MOST_EXPERTS if name.endswith("experts") else layers
        if count > most:
            why = f" for weights of {tensors:,} tensors" if most < _MOST_LAYERS else ""
            raise InputError(
                f"the config of {place!r} has {name} {count:,}, expected at most {most:,}{why}; "
                "check that config.json belongs to the weights."
            )


def _counts(config: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """The numbers of layers in a config and those inside it, with their names."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _counts(value, key)
    elif isinstance(config, list):
        for value in config:
            yield from _counts(value, name)
    elif isinstance(config, int) and _COUNTS.fullmatch(name):
        yield name, config


def _count_tensors(folder: Path) -> int | None:
    """How many tensors the safetensors files of a folder hold, None where there are none or they cannot be read."""
    from safetensors import SafetensorError, safe_open

    found = 0
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, framework="np") as file:
                found += len(file.keys())
        except (SafetensorError, OSError):
            return None
    return found or None


def check_weights(place: str, info: dict[str, Any], network: Any) -> None:
    """Refuse weights with holes, which transformers would fill with random numbers; no hidden state needs a pooler.

    What the model computes instead of saving it, such as Marian's sinusoidal positions, is no hole. Marian names these
    weights as in the model with a head, where "model." stands before them, and misses them in the model without one.
    """
    computed = {
        str(key).removeprefix("model.") for key in getattr(network, "_keys_to_ignore_on_load_missing", ()) or ()
    }
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key and key not in computed)
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


def explain(place: str, error: Exception, local: bool) -> IsotropeError:
    """The error that says in one sentence what went wrong while a model was loaded."""
    text = describe_error(error)
    check = "the files in it" if local else "its name, its revision and the network"
    message = f"the model {place!r} cannot be loaded ({text}); check {check}."
    if "trust_remote_code" in text or "custom code" in text:
        message = (
            f"the model {place!r} wants to run code of its own, which is refused; "
            "read that code, and if you trust it add --trust-remote-code."
        )
    elif isinstance(error, ImportError):
        if "timm" in text and find_spec("timm") is None:
            return MissingExtra("timm", "timm", f"the model {place}")
        message = f"the model {place!r} needs what cannot be imported here ({text}); install what it names."
    elif type(error).__name__ == "SafetensorError":
        message = f"the weights of {place!r} are damaged or cut short ({text}); download them again."
    return InputError(message)
