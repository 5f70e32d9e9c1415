"""Figures of studies: those of a run, and drawings of a study's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.drawing.layers import label_layers
from isotrope.drawing.log_axis import use_log_axis, write_plain_ticks
from isotrope.drawing.style import COLOURS, COLUMN_WIDTH, GREY, PAGE_WIDTH, use_style
from isotrope.errors import InputError, MissingExtra
from isotrope.studies.result import FigureEntry

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The files that each figure is written as.
KINDS = ("svg", "pdf")


@dataclass(frozen=True)
class StudyFigure:
    """A figure that is not drawn yet.

    Args:
        name: the name of its files.
        title: what it shows, in one sentence.
        draw: draws it.
    """

    name: str
    title: str
    draw: Callable[[], Figure] = field(repr=False)


def make_figure(
    name: str, title: str, fill: Callable[[Figure], None], *, width: float = COLUMN_WIDTH, height: float = 2.3
) -> StudyFigure:
    """Make a figure of a study's own tables.

    Args:
        name: the name of its files.
        title: what it shows, in one sentence.
        fill: draws into an empty figure.
        width: in inches.
        height: in inches.
    """

    def draw() -> Figure:
        with use_style():
            from matplotlib.figure import Figure

            figure = Figure(figsize=(width, height), layout="constrained")
            fill(figure)
            write_plain_ticks(figure)
        return figure

    return StudyFigure(name, title, draw)


def make_layer_figure(
    name: str, title: str, frame: pd.DataFrame, by: str, column: str, label: str, *, width: float = COLUMN_WIDTH
) -> StudyFigure:
    """Make a figure of one line over the layers for each value of the column `by`.

    Args:
        name: the name of its files.
        title: what it shows, in one sentence.
        frame: a table with the columns `layer`, `by` and `column`.
        by: the column that tells lines apart.
        column: the column of the values.
        label: the name of the values.
        width: in inches.
    """

    def fill(figure: Figure) -> None:
        if frame.empty:
            raise InputError(f"the table has no row, so that there is no {label} to draw")
        axes = figure.subplots()
        for (line, rows), colour in zip(frame.groupby(by, sort=False), COLOURS, strict=False):
            axes.plot(range(len(rows)), rows[column].astype(float), marker=".", color=colour, label=str(line))
        label_layers(axes, list(dict.fromkeys(frame["layer"])))
        axes.set_ylabel(label)
        figure.legend(title=by, loc="outside right upper")

    return make_figure(name, title, fill, width=width)


#: Line styles for the models of an overlay, once all colours are used.
_STYLES = ("-", "--", ":")

#: An overlay has a logarithmic axis if positive values differ by more than this factor, unless all are shares of 1.
_LOG_RANGE = 50.0


def make_overlay_figure(
    name: str,
    title: str,
    frame: pd.DataFrame,
    columns: Mapping[str, str],
    *,
    lines: Sequence[float] = (),
    width: float = PAGE_WIDTH,
) -> StudyFigure:
    """Make a figure with one line for each model over relative depth, in one panel for each column.

    Args:
        name: the name of its files.
        title: what it shows, in one sentence.
        frame: a row for each layer of each model in order, with the column `model` and `columns`.
        columns: the columns to draw, with the names of their values.
        lines: horizontal reference lines.
        width: in inches.
    """

    def fill(figure: Figure) -> None:
        if frame.empty:
            raise InputError("the table has no row, so that there is nothing to draw")
        panels = figure.subplots(1, len(columns), squeeze=False)[0]
        for axes, (column, label) in zip(panels, columns.items(), strict=True):
            for number, (_, rows) in enumerate(frame.groupby("model", sort=False)):
                style = {"color": COLOURS[number % len(COLOURS)], "linestyle": _STYLES[number // len(COLOURS) % 3]}
                named = {"label": str(rows["model"].iloc[0])} if axes is panels[0] else {}
                depth = [index / max(len(rows) - 1, 1) for index in range(len(rows))]
                axes.plot(depth, rows[column].astype(float), marker=".", **style, **named)
            values = frame[column].astype(float).dropna()
            if len(values) and values.min() > 0 and values.max() > max(1.0, _LOG_RANGE * values.min()):
                use_log_axis(axes)
            for line in lines:
                axes.axhline(line, color=GREY, linewidth=0.6)
            axes.set_xlabel("relative depth")
            axes.set_ylabel(label)
        figure.legend(loc="outside lower center", ncols=min(frame["model"].nunique(), 4))

    return make_figure(name, title, fill, width=width, height=2.6)


def run_figures(run: Path, names: Sequence[str]) -> list[StudyFigure]:
    """The figures of these names that `isotrope figure` draws of a run folder."""
    from isotrope.figures.draw import draw, find_figure

    return [StudyFigure(name, find_figure(name).shows, partial(draw, run, name)) for name in names]


def save_figures(figures: Iterable[StudyFigure], folder: Path) -> list[FigureEntry]:
    """Draw figures into a folder, and list them with the reason for each that cannot be drawn."""
    entries = []
    for figure in figures:
        reason = None
        try:
            from isotrope.figures.draw import save

            drawn = figure.draw()
            for kind in KINDS:
                save(drawn, folder / f"{figure.name}.{kind}")
        except (InputError, MissingExtra) as error:
            reason = str(error)
        entries.append(FigureEntry(figure.name, figure.title, reason))
    return entries
