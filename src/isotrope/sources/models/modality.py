"""What a model reads: text, images or sound, told from its class."""

from __future__ import annotations

import inspect
from typing import Any

from isotrope.errors import InputError

#: What the first argument of a model's class is called, and what it reads then.
_BY_INPUT = {"input_ids": "text", "pixel_values": "image", "input_values": "audio", "input_features": "audio"}

#: What the parts of models that read several things are called, as of CLIP or LLaVA, and those of their configs.
_TOWERS = {
    "text": ("text_model", "language_model"),
    "image": ("vision_model", "vision_tower", "visual"),
    "audio": ("audio_model", "audio_tower"),
}
_CONFIGS = {"image": "vision_config", "audio": "audio_config"}

#: What each is called in sentences.
WORDS = {"text": "text", "image": "images", "audio": "sound"}


def find_modalities(config: Any, own: type | None = None) -> tuple[str, ...]:
    """What a model of a config can read, first what its class says; text where nothing is known of it.

    own: the class of a model that brings its own code, which may say so only by what its `forward` takes.

    >>> from transformers import CLIPConfig, ViTConfig
    >>> find_modalities(ViTConfig()), find_modalities(CLIPConfig())
    (('image',), ('text', 'image'))
    """
    from transformers import MODEL_MAPPING

    if own is not None:
        taken = [*inspect.signature(own.forward).parameters, getattr(own, "main_input_name", "")]  # type: ignore[attr-defined]
        return (next((_BY_INPUT[name] for name in taken if name in _BY_INPUT), "text"),)
    try:
        found = MODEL_MAPPING[type(config)]
    except KeyError:
        return ("text",)
    classes = found if isinstance(found, (tuple, list)) else (found,)
    first = _BY_INPUT.get(getattr(classes[0], "main_input_name", ""), "text")
    others = [kind for kind, name in _CONFIGS.items() if hasattr(config, name) and hasattr(config, "text_config")]
    return tuple(dict.fromkeys([first, *others]))


def find_tower(model: Any, modality: str) -> Any:
    """The part of a model that reads one modality: of two towers the one, else the model itself.

    >>> import torch
    >>> clip = torch.nn.ModuleDict({"text_model": torch.nn.Identity(), "vision_model": torch.nn.ReLU()})
    >>> find_tower(clip, "image")
    ReLU()
    """
    there = {kind: getattr(model, name) for kind, names in _TOWERS.items() for name in names if hasattr(model, name)}
    return there.get(modality, model) if len(there) > 1 else model


def resolve_modality(name: str, can: tuple[str, ...], wanted: str | None) -> str:
    """What a model is to read: what is wanted, if it can, else what its class says first."""
    if wanted is None or wanted in can:
        return wanted or can[0]
    words = " and ".join(WORDS[kind] for kind in can)
    raise InputError(f"the model {name} reads {words} and got {WORDS[wanted]}; give it {words}.")
