"""A SoftDecay layer that was saved with its model, back in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from isotrope.errors import InputError, StoreError
from isotrope.nn.attaching import NAME, SETTINGS, attach, inner
from isotrope.nn.softdecay import SoftDecay

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


def restore(model: Any, folder: str | Path | None = None, revision: str | None = None) -> SoftDecay:
    """Attach the layer with which a model was saved by `save_pretrained`, its α as it was then; the layer.

    `from_pretrained` gives back the model without the layer, and says that it left its number out. folder: where the
    weights are, by default where the model was loaded from, a folder or a name on the hub. revision: which one there.

    >>> import tempfile
    >>> from transformers import BertConfig, BertModel
    >>> model = BertModel(BertConfig(num_hidden_layers=2, hidden_size=12, intermediate_size=8))
    >>> _ = attach(model, alpha=-0.3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     restore(BertModel.from_pretrained(folder))
    SoftDecay(alpha=-0.3, form='shifted', trainable=True)
    """
    network: Any = inner(model)
    settings = getattr(getattr(network, "config", None), SETTINGS, None)
    if not isinstance(settings, dict):
        raise InputError(f"this {type(network).__name__} was saved without a SoftDecay layer; use attach.")
    raw = _saved(str(folder or network.config._name_or_path), f"{NAME}.raw_alpha", revision)
    layer = attach(network, **settings)
    with torch.no_grad():
        layer.raw_alpha.copy_(raw)
    return layer


def _saved(place: str, ending: str, revision: str | None) -> torch.Tensor:
    """The one tensor of saved weights whose name ends so."""
    from safetensors import safe_open

    for path in _weights(place, revision):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118  # it is no dict
                if key.endswith(ending):
                    return file.get_tensor(key)
    raise StoreError(f"the weights in {place!r} hold no SoftDecay layer; save the model with the layer attached.")


def _weights(place: str, revision: str | None) -> list[str]:
    """The files with the weights of a model: one, or as many as its index names."""
    from transformers.utils import cached_file

    def fetch(name: str) -> str | None:
        found: str | None = cached_file(place, name, revision=revision, _raise_exceptions_for_missing_entries=False)
        return found

    try:
        if (index := fetch(_INDEX)) is not None:
            names = sorted(set(json.loads(Path(index).read_bytes())["weight_map"].values()))
        else:
            names = [_WEIGHTS]
        found = [path for name in names if (path := fetch(name)) is not None]
    except OSError as error:
        raise StoreError(f"there is no model in {place!r}; give the folder where the model was saved.") from error
    if not found:
        raise StoreError(f"there is no {_WEIGHTS} in {place!r}; give the folder where the model was saved.")
    return found
