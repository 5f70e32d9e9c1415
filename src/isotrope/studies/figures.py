"""Figures of a study for print: those that any scan has, and drawings of the study's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.drawing.curve import layer_axis
from isotrope.drawing.style import COLOURS, COLUMN, style
from isotrope.errors import InputError, MissingExtra
from isotrope.studies.result import Drawn

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The files that each figure is written as.
KINDS = ("svg", "pdf")


@dataclass(frozen=True)
class Picture:
    """A figure that is yet to be drawn. name: of its files. title: what it shows, in one sentence."""

    name: str
    title: str
    make: Callable[[], Figure] = field(repr=False)


def drawing(
    name: str, title: str, draw: Callable[[Figure], None], *, width: float = COLUMN, height: float = 2.3
) -> Picture:
    """A picture of a study's own. draw: fills an empty figure of this width and height, in inches."""
    return Picture(name, title, partial(_made, draw, width, height))


def _made(draw: Callable[[Figure], None], width: float, height: float) -> Figure:
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
    return figure


def by_layer(frame: pd.DataFrame, by: str, column: str, label: str, figure: Figure) -> None:
    """A line of a column over layers for each value of another one. label: of the column."""
    if frame.empty:
        raise InputError(f"the table has no row, so that there is no {label} to draw")
    axes = figure.subplots()
    for (name, some), colour in zip(frame.groupby(by, sort=False), COLOURS, strict=False):
        axes.plot(range(len(some)), some[column].astype(float), marker=".", color=colour, label=str(name))
    layer_axis(axes, list(dict.fromkeys(frame["layer"])))
    axes.set_ylabel(label)
    figure.legend(title=by, loc="outside right upper")


def of_run(run: Path, names: Sequence[str]) -> list[Picture]:
    """Pictures that `isotrope figure` draws of a run folder, by name."""
    from isotrope.figures.draw import draw, find

    return [Picture(name, find(name).shows, partial(draw, run, name)) for name in names]


def draw_all(pictures: Iterable[Picture], folder: Path) -> list[Drawn]:
    """Draw pictures into a folder; one that cannot be drawn is kept with the reason."""
    done = []
    for picture in pictures:
        reason = None
        try:
            from isotrope.figures.draw import save

            figure = picture.make()
            for kind in KINDS:
                save(figure, folder / f"{picture.name}.{kind}")
        except (InputError, MissingExtra) as error:
            reason = str(error)
        done.append(Drawn(picture.name, picture.title, reason))
    return done
