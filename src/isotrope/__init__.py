"""isotrope measures, explains and repairs the geometry of embedding spaces."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from isotrope.deprecation import install
from isotrope.version import __version__ as __version__

#: Where each public name lives. They are loaded when first used: importing isotrope imports nothing heavy.
_HOME = {
    "Advice": "advice.advice",
    "Affine": "repairs",
    "AllButTheTop": "repairs",
    "Calibration": "search.calibration",
    "Centering": "repairs",
    "ClusterIsotropy": "repairs",
    "Encoder": "sources.text.encoder",
    "Engine": "engines.engine",
    "Findings": "findings",
    "Flow": "repairs",
    "Input": "sources.input",
    "IsotropeError": "errors",
    "Loaded": "sources.models.load",
    "Moments": "statistics",
    "Reading": "findings",
    "Run": "runs.run",
    "Sample": "statistics",
    "SequenceStatistics": "statistics",
    "SoftDecay": "repairs",
    "TokenStatistics": "statistics",
    "Training": "finetuning.settings",
    "Whitening": "repairs",
    "advise": "advice.advise",
    "before_after": "repairs.effects.before_after",
    "build": "advice.build",
    "calibrate": "search.calibrate",
    "evaluate_glue": "finetuning.glue",
    "evaluate_index": "search.index_fidelity",
    "evaluate_retrieval": "evaluation.retrieval",
    "evaluate_sts": "evaluation.sts",
    "load_repair": "repairs",
    "measure": "readings.layer_readings",
    "merge_ranks": "engines.distributed",
    "open_corpus": "sources.corpora.corpus",
    "prepare_rows": "statistics",
    "quantize": "quantization",
    "scan": "scanner",
    "sif_weights": "sources.text.token_weights",
    "write_comparison": "report",
    "write_report": "report",
}

__all__ = sorted([*_HOME, "nn"])

install()


def __getattr__(name: str) -> Any:
    if name == "nn":
        return import_module("isotrope.nn")
    if name not in _HOME:
        raise AttributeError(f"module 'isotrope' has no attribute {name!r}")
    return getattr(import_module(f"isotrope.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, "nn"])
