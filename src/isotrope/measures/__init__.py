"""Measures: pure functions of a statistic, one file each; a new file here adds its measures everywhere.

Each measure is importable by its name: `from isotrope.measures import isoscore`.
"""

import pkgutil
from importlib import import_module

from isotrope.measures.record import MEASURES, Measure
from isotrope.measures.selection import GROUPS, get, select

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

# After the imports, so that a measure's name stands for the measure and not for the file it is in.
globals().update({record.name: record for record in MEASURES})
globals().update({n.removesuffix("_additive"): get(n) for n in MEASURES.names() if n.endswith("_additive")})

__all__ = ["GROUPS", "MEASURES", "Measure", "get", "select"]
