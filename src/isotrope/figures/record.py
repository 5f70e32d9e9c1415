"""The record of a figure: what it shows, which paper's figure it answers, what it needs, and the function itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isotrope.drawing.style import COLUMN_WIDTH, PAGE_WIDTH
from isotrope.errors import InputError
from isotrope.figures.run_data import RunData
from isotrope.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

YAN = "Yan et al. 2022 (SoftDecay)"
GODEY = "Godey et al. 2023 (anisotropy)"
MARBUT = "Marbut, Chandler and Wheeler (latent geometry)"
YAMAGIWA = "Yamagiwa and Shimodaira 2024 (norm and variance)"

#: What a figure may need of a run besides its readings, and how to get it.
NEEDS: Mapping[str, tuple[str, str]] = {
    "spectra": ("the table of spectra", "scan again"),
    "tokens": ("the table of token types", "scan a model over a text with --measures tokens, without --pooling"),
    "sequence_cdf": (
        "the curves of sequences' spectra",
        "scan a model over a text with --measures sequences, without --pooling",
    ),
    "statistics": ("the statistics of its layers", "scan again with -o"),
    "sample": ("a sample of rows", "scan again with --sample 20000"),
    "lengths": ("the lengths of its sequences", "scan a model over a text with --measures sequences"),
}

Draw: TypeAlias = "Callable[[RunData, Figure], None]"


@dataclass(frozen=True)
class FigureRecord:
    """One figure of a run, for print.

    Args:
        name: of the figure.
        shows: what it shows, in one sentence.
        answers: the corresponding figures of the papers.
        draw: draws into an empty figure.
        needs: what the run must hold, keys of NEEDS.
        measures: the readings that the run must hold.
        width: in inches.
        height: in inches.
        layer: the default layer, None where the figure is of several layers.
    """

    name: str
    shows: str
    answers: str
    draw: Draw
    needs: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    width: float = COLUMN_WIDTH
    height: float = 2.3
    layer: Literal["middle", "last"] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data."""
        return {
            "name": self.name,
            "shows": self.shows,
            "answers": self.answers,
            "needs": [NEEDS[need][0] for need in self.needs],
            "measures": list(self.measures),
            "width_inches": self.width,
            "height_inches": self.height,
            "layer": self.layer,
        }

    def check_run(self, run: RunData) -> None:
        """Raise an error that says what a run lacks for the figure, and how to get it."""
        lacks = [NEEDS[need] for need in self.needs if not run.has(need)]
        known = {r.measure for r in run.findings.readings if math.isfinite(r.value)}
        if missing := [m for m in self.measures if m not in known]:
            lacks.append((f"a value of {', '.join(missing)}", f"scan with --measures {','.join(missing)}"))
        for what, remedy in lacks:
            raise InputError(
                f"the figure {self.name!r} needs {what}, which the run {str(run.folder)!r} does not have; {remedy}."
            )


FIGURES = Registry[FigureRecord]("figure")


def register_figure(name: str, *, page: bool = False, **facts: Any) -> Callable[[Draw], Draw]:
    """Register a function that draws into an empty figure.

    Args:
        name: the name of the figure.
        page: whether the figure is as wide as a page instead of a column.
        facts: further fields of `FigureRecord`.
    """

    def add(function: Draw) -> Draw:
        FIGURES.add(name, FigureRecord(name=name, draw=function, width=PAGE_WIDTH if page else COLUMN_WIDTH, **facts))
        return function

    return add
