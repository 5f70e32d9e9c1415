"""Figures for print from a run folder, a figure or a family in each file; a new file here adds its figures everywhere.

>>> FIGURES.get("norm-variance").answers
'Yamagiwa and Shimodaira 2024 (norm and variance), Fig. 2'
"""

import pkgutil
from importlib import import_module

from isotrope.figures.record import FIGURES, FigureRecord

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

from isotrope.figures.draw import draw, save  # noqa: E402  (after the figures are known)

__all__ = ["FIGURES", "FigureRecord", "draw", "save"]
