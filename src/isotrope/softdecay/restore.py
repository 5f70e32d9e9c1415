"""Restore a SoftDecay layer that was saved with its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from isotrope.errors import InputError, StoreError
from isotrope.softdecay.attach import SETTINGS, attach, find_pass, resolve_module_name, unwrap
from isotrope.softdecay.forward_pass import NAME
from isotrope.softdecay.layer import SoftDecay

#: What the config keeps of a layer, with the types that JSON gives back.
_TYPES: dict[str, tuple[type, ...]] = {
    "alpha": (float, int),
    "form": (str,),
    "trainable": (bool,),
    "block": (int,),
    "at": (str, type(None)),
}

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


def restore(model: Any, folder: str | Path | None = None, revision: str | None = None) -> SoftDecay:
    """Attach the layer with which a model was saved by `save_pretrained`, its α as it was then; the layer.

    `from_pretrained` gives back the model without the layer, and says that it left its number out.

    Args:
        model: as `from_pretrained` gave it.
        folder: where the weights are, a folder or a name on the hub, by default where the model was loaded from.
        revision: which revision on the hub.

    Examples:
        >>> import tempfile
        >>> from transformers import BertConfig, BertModel
        >>> model = BertModel(BertConfig(num_hidden_layers=2, hidden_size=12, intermediate_size=8))
        >>> _ = attach(model, alpha=-0.3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save_pretrained(folder)
        ...     restore(BertModel.from_pretrained(folder))
        SoftDecay(alpha=-0.3, form='shifted', trainable=True)
    """
    network: Any = unwrap(model)
    if not hasattr(getattr(network, "config", None), SETTINGS):
        raise InputError(f"this {type(network).__name__} was saved without a SoftDecay layer; use attach.")
    return _restore(network, str(folder or network.config._name_or_path), {"revision": revision})


def restore_saved(model: Any, origin: str | None = None, **hub: Any) -> None:
    """Restore the layer of a model that was just loaded, where its config says that it was saved with one.

    Args:
        model: as `from_pretrained` gave it; a model that has the layer already stays as it is.
        origin: the folder or hub id that it was loaded from, by default what its config says.
        hub: `revision` and `local_files_only`, as they were given to `from_pretrained`.
    """
    network: Any = unwrap(model)
    if hasattr(getattr(network, "config", None), SETTINGS) and find_pass(network) is None:
        _restore(network, origin or str(network.config._name_or_path), hub)


def check_layer_kept(folder: Path, what: str) -> None:
    """Raise where the config.json in the folder of a model file names a SoftDecay layer, which the file cannot hold."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(config, dict) and SETTINGS in config:
        raise InputError(
            f"the model in {str(folder)!r} was trained with a SoftDecay layer, which {what} does not hold; give "
            f"the folder of its weights, or remove {SETTINGS!r} in config.json to read it without the layer."
        )


def _restore(network: Any, origin: str, hub: dict[str, Any]) -> SoftDecay:
    settings = _check_settings(getattr(network.config, SETTINGS), origin)
    raw = _read_tensor(origin, f"{NAME}.raw_alpha", hub)
    if raw.shape != (1,) or not raw.is_floating_point() or not torch.isfinite(raw).all():
        raise StoreError(
            f"the alpha of the SoftDecay layer in {origin!r} is damaged: its tensor has shape {tuple(raw.shape)}, "
            "expected one finite number; save the model anew."
        )
    layer = attach(network, **settings | {"at": resolve_module_name(network, settings["at"])})
    with torch.no_grad():
        layer.raw_alpha.copy_(raw)
    return layer


def _check_settings(settings: Any, origin: str) -> dict[str, Any]:
    """The entry of a config, complete and with values of the right types."""
    whole = isinstance(settings, dict) and settings.keys() == _TYPES.keys()
    wrong = [] if not whole else [name for name, kinds in _TYPES.items() if type(settings[name]) not in kinds]
    if not whole or wrong:
        got = f"{wrong[0]}={settings[wrong[0]]!r}" if wrong else repr(settings)
        raise InputError(
            f"the entry {SETTINGS!r} of config.json in {origin!r} is damaged or of another version ({got[:100]}); "
            f"expected {', '.join(_TYPES)} as isotrope writes them: save the model anew, or delete the entry to leave "
            "the layer out."
        )
    found: dict[str, Any] = settings
    return found


def _read_tensor(origin: str, ending: str, hub: dict[str, Any]) -> torch.Tensor:
    """The one tensor of saved weights whose name ends so."""
    from safetensors import safe_open

    for path in _find_weights(origin, hub):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118  # it is no dict
                if key.endswith(ending):
                    return file.get_tensor(key)
    raise StoreError(f"the weights in {origin!r} hold no SoftDecay layer; save the model with the layer attached.")


def _find_weights(origin: str, hub: dict[str, Any]) -> list[str]:
    """The files with the weights of a model: one, or as many as its index names."""
    from transformers.utils import cached_file

    def fetch(name: str) -> str | None:
        found: str | None = cached_file(origin, name, **hub, _raise_exceptions_for_missing_entries=False)
        return found

    try:
        if (index := fetch(_INDEX)) is not None:
            names = sorted(set(json.loads(Path(index).read_bytes())["weight_map"].values()))
        else:
            names = [_WEIGHTS]
        found = [path for name in names if (path := fetch(name)) is not None]
    except OSError as error:
        raise StoreError(f"there is no model in {origin!r}; give the folder where the model was saved.") from error
    if not found:
        raise StoreError(f"there is no {_WEIGHTS} in {origin!r}; give the folder where the model was saved.")
    return found
