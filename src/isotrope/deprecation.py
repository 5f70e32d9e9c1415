"""Imports that the documentation of version 0.1 showed: they work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
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
    "isotrope.statistics.block": {"block": "statistics.usable_rows.block"},
}


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


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules of version 0.1 that are gone and that its documentation imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        def find(name: str) -> Any:
            return resolve_moved(module.__name__, name)

        module.__dict__["__getattr__"] = find


def install() -> None:
    """Let the import system find what has moved."""
    sys.meta_path.append(MovedModules())
