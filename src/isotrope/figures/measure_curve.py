"""Any measure over the layers, with its interval and its null; Godey et al.'s Figs. 1 to 4 with the mean cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.figures.record import FigureRecord
from isotrope.measures import Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData


def measure_curve(m: Measure) -> FigureRecord:
    """The record of the figure that shows one measure in every layer."""

    def draw(run: RunData, figure: Figure) -> None:
        axes = run.findings.plot(m.name, ax=figure.subplots())
        axes.set_ylabel(m.title)

    return FigureRecord(
        name=m.name,
        shows=f"{m.title} in each layer, its 95 % interval, and what isotropic rows would give. {m.says}",
        answers=m.paper,
        draw=draw,
        measures=(m.name,),
    )
