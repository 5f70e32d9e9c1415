"""The experiments of four papers as whole protocols, on any models and texts.

Each study is a package that holds a function of the same name:

>>> from isotrope.studies.norm_variance import norm_variance
>>> norm_variance(output="folder", models=["bert-base-uncased"])  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotrope.studies import anisotropy, latent_geometry, norm_variance, uniformity
    from isotrope.studies.latent_geometry import predict_glue
    from isotrope.studies.result import Claim, Study
    from isotrope.studies.run_all import all_studies

__all__ = [
    "Claim",
    "Study",
    "all_studies",
    "anisotropy",
    "latent_geometry",
    "norm_variance",
    "predict_glue",
    "uniformity",
]

#: The modules of the public names, which are imported when a name is first used.
_HOME = {"Claim": "result", "Study": "result", "all_studies": "run_all", "predict_glue": "latent_geometry.prediction"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module
