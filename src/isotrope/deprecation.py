"""Imports that the documentation of version 0.1 showed: they work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

#: Where the names of modules of version 0.1 are now, by module. The new places are below `isotrope`.
MOVED: dict[str, dict[str, str]] = {
    "isotrope.engines.choosing": {"Engine": "engines.engine.Engine"},
    "isotrope.engines.ranks": {"merged": "engines.distributed.merge_ranks"},
    "isotrope.evaluation.training": {"Training": "finetuning.settings.Training"},
    "isotrope.sources.arrays": {"ArraySource": "sources.vectors.source.ArraySource"},
    "isotrope.sources.corpora": {"open_corpus": "sources.corpora.corpus.open_corpus"},
    "isotrope.sources.inputs": {"Input": "sources.input.Input"},
    "isotrope.sources.models": {"Loaded": "sources.models.load.Loaded"},
    "isotrope.sources.text_rows": {"Encoder": "sources.text.encoder.Encoder"},
    "isotrope.sources.token_weights": {"sif_weights": "sources.text.token_weights.sif_weights"},
    "isotrope.statistics": {"block": "statistics.usable_rows.prepare_rows"},
    "isotrope.statistics.block": {"block": "statistics.usable_rows.prepare_rows"},
}

#: Those among them that are packages now, which resolve moved names themselves.
PACKAGES = {"isotrope.sources.corpora", "isotrope.sources.models", "isotrope.statistics"}


def resolve_moved(module: str, name: str) -> Any:
    """A name of a module of version 0.1 from its new place, with a warning.

    Args:
        module: The full name of the module of version 0.1.
        name: What is asked of it.

    Raises:
        AttributeError: If version 0.1 did not document the name.
    """
    if name not in MOVED.get(module, {}):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, _, new_name = f"isotrope.{MOVED[module][name]}".rpartition(".")
    warnings.warn(
        f"{module}.{name} has moved and will be removed in 0.3; import {new_name} from {public_home(home, new_name)}.",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(import_module(home), new_name)


def public_home(home: str, name: str) -> str:
    """The package that a name should be imported from: `isotrope` where it is public there."""
    return "isotrope" if name in import_module("isotrope").__all__ else home


def install() -> None:
    """Register the modules of version 0.1 that are gone; a name of them is found in its new place when it is used.

    They are registered rather than found by a finder: the import system would set a found module as an attribute of
    its package, where it would replace what has the same name (`isotrope.statistics.block`).
    """
    for name in MOVED.keys() - PACKAGES:
        module = ModuleType(name)
        module.__dict__["__getattr__"] = _make_resolver(name)
        sys.modules.setdefault(name, module)


def _make_resolver(module: str) -> Callable[[str], Any]:
    def resolve(name: str) -> Any:
        return resolve_moved(module, name)

    return resolve
