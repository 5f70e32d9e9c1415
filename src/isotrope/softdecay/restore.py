"""A SoftDecay layer that was saved with its model, back in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from isotrope.errors import InputError, StoreError
from isotrope.softdecay.attach import NAME, SETTINGS, attach, attached, inner, rename_for
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
    if not hasattr(getattr(network, "config", None), SETTINGS):
        raise InputError(f"this {type(network).__name__} was saved without a SoftDecay layer; use attach.")
    return _restore(network, str(folder or network.config._name_or_path), {"revision": revision})


def restore_saved(model: Any, place: str | None = None, **hub: Any) -> None:
    """Restore the layer of a model that was just loaded, where its config says that it was saved with one.

    Args:
        model: as `from_pretrained` gave it; a model with the layer in its place stays as it is.
        place: the folder or hub id that it was loaded from, by default what its config says.
        hub: `revision` and `local_files_only`, as they were given to `from_pretrained`.
    """
    network: Any = inner(model)
    if hasattr(getattr(network, "config", None), SETTINGS) and attached(network) is None:
        _restore(network, place or str(network.config._name_or_path), hub)


def refuse_lost_layer(folder: Path, what: str) -> None:
    """Refuse a model file that cannot hold the SoftDecay layer of which the config.json in its folder speaks."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(config, dict) and SETTINGS in config:
        raise InputError(
            f"the model in {str(folder)!r} was trained with a SoftDecay layer, which {what} does not hold; give "
            f"the folder of its weights, or remove {SETTINGS!r} in config.json to read it without the layer."
        )


def _restore(network: Any, place: str, hub: dict[str, Any]) -> SoftDecay:
    settings = _check_settings(getattr(network.config, SETTINGS), place)
    raw = _saved(place, f"{NAME}.raw_alpha", hub)
    if raw.shape != (1,) or not raw.is_floating_point() or not torch.isfinite(raw).all():
        raise StoreError(
            f"the alpha of the SoftDecay layer in {place!r} is damaged: its tensor has shape {tuple(raw.shape)}, "
            "expected one finite number; save the model anew."
        )
    layer = attach(network, **settings | {"at": rename_for(network, settings["at"])})
    with torch.no_grad():
        layer.raw_alpha.copy_(raw)
    return layer


def _check_settings(settings: Any, place: str) -> dict[str, Any]:
    """The entry of a config, complete and with values of the right types."""
    whole = isinstance(settings, dict) and settings.keys() == _TYPES.keys()
    wrong = [] if not whole else [name for name, kinds in _TYPES.items() if type(settings[name]) not in kinds]
    if not whole or wrong:
        got = f"{wrong[0]}={settings[wrong[0]]!r}" if wrong else repr(settings)
        raise InputError(
            f"the entry {SETTINGS!r} of config.json in {place!r} is damaged or of another version ({got[:100]}); "
            f"expected {', '.join(_TYPES)} as isotrope writes them: save the model anew, or delete the entry to leave "
            "the layer out."
        )
    found: dict[str, Any] = settings
    return found


def _saved(place: str, ending: str, hub: dict[str, Any]) -> torch.Tensor:
    """The one tensor of saved weights whose name ends so."""
    from safetensors import safe_open

    for path in _weights(place, hub):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118  # it is no dict
                if key.endswith(ending):
                    return file.get_tensor(key)
    raise StoreError(f"the weights in {place!r} hold no SoftDecay layer; save the model with the layer attached.")


def _weights(place: str, hub: dict[str, Any]) -> list[str]:
    """The files with the weights of a model: one, or as many as its index names."""
    from transformers.utils import cached_file

    def fetch(name: str) -> str | None:
        found: str | None = cached_file(place, name, **hub, _raise_exceptions_for_missing_entries=False)
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
