"""Geometry while training: a SoftDecay layer for any encoder, regularisers, and a monitor that sees a collapse come."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from isotrope.errors import MissingExtra

#: Where each public name lives. They are loaded when first used: importing isotrope.nn imports no torch.
_HOME = {
    "ExpDecay": "nn.regularizers",
    "GeometryMonitor": "nn.monitor",
    "IsoScoreStar": "nn.regularizers",
    "MeanCosineLoss": "nn.regularizers",
    "PatchinessLoss": "nn.soft_quantizer",
    "SoftDecay": "softdecay.layer",
    "WhiteningLoss": "nn.regularizers",
    "attach": "softdecay.attach",
    "detach": "softdecay.attach",
    "parameter_groups": "softdecay.layer",
    "regularize": "nn.regularizers",
    "restore": "softdecay.restore",
    "soft_decay": "softdecay.spectral",
    "soft_kmeans": "nn.soft_quantizer",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'isotrope.nn' has no attribute {name!r}")
    if find_spec("torch") is None:
        raise MissingExtra("torch", "models", f"isotrope.nn.{name}")
    return getattr(import_module(f"isotrope.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
