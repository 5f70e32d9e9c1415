"""isotrope measures, explains and repairs the geometry of embedding spaces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from isotrope import nn
    from isotrope.advice.advice import Advice
    from isotrope.advice.advise import advise
    from isotrope.advice.build import build
    from isotrope.errors import IsotropeError
    from isotrope.evaluation.retrieval import evaluate_retrieval
    from isotrope.evaluation.sts import evaluate_sts
    from isotrope.findings import Findings, Reading
    from isotrope.finetuning.glue import evaluate_glue
    from isotrope.readings.measure_rows import measure
    from isotrope.repairs import (
        Affine,
        AllButTheTop,
        Centering,
        ClusterIsotropy,
        Flow,
        SoftDecay,
        Whitening,
        load_repair,
    )
    from isotrope.repairs.effects.before_after import before_after
    from isotrope.report import write_comparison, write_report
    from isotrope.runs.run import Run
    from isotrope.scanner import scan
    from isotrope.statistics import Moments, Sample, SequenceStatistics, TokenStatistics

__all__ = [
    "Advice",
    "Affine",
    "AllButTheTop",
    "Centering",
    "ClusterIsotropy",
    "Findings",
    "Flow",
    "IsotropeError",
    "Moments",
    "Reading",
    "Run",
    "Sample",
    "SequenceStatistics",
    "SoftDecay",
    "TokenStatistics",
    "Whitening",
    "advise",
    "before_after",
    "build",
    "evaluate_glue",
    "evaluate_retrieval",
    "evaluate_sts",
    "load_repair",
    "measure",
    "nn",
    "scan",
    "write_comparison",
    "write_report",
]

#: Where each public name lives. They are loaded when first used: importing isotrope imports nothing heavy.
_HOME = {
    "Advice": "advice.advice",
    "Affine": "repairs",
    "AllButTheTop": "repairs",
    "Centering": "repairs",
    "ClusterIsotropy": "repairs",
    "Findings": "findings",
    "Flow": "repairs",
    "IsotropeError": "errors",
    "Moments": "statistics",
    "Reading": "findings",
    "Run": "runs.run",
    "Sample": "statistics",
    "SequenceStatistics": "statistics",
    "SoftDecay": "repairs",
    "TokenStatistics": "statistics",
    "Whitening": "repairs",
    "advise": "advice.advise",
    "before_after": "repairs.effects.before_after",
    "build": "advice.build",
    "evaluate_glue": "finetuning.glue",
    "evaluate_retrieval": "evaluation.retrieval",
    "evaluate_sts": "evaluation.sts",
    "load_repair": "repairs",
    "measure": "readings.measure_rows",
    "scan": "scanner",
    "write_comparison": "report",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name == "nn":
        return import_module("isotrope.nn")
    if name not in _HOME:
        raise AttributeError(f"module 'isotrope' has no attribute {name!r}")
    return getattr(import_module(f"isotrope.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, "nn"])
