"""Draws figures of runs by name, and writes them as PDF, SVG or PNG."""

from __future__ import annotations

import difflib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.drawing.style import use_style
from isotrope.errors import InputError, StoreError, Undefined
from isotrope.figures.layer_curves import make_measure_figure
from isotrope.figures.record import FIGURES, FigureRecord
from isotrope.figures.run_data import RunData
from isotrope.measures import MEASURES, get
from isotrope.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The kinds of file, with metadata that leave out the date.
_TIMELESS: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}


def find_figure(name: str) -> FigureRecord:
    """Find the record of a figure, or that of the curve of a measure over the layers.

    >>> find_figure("isoscor")
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no figure or measure 'isoscor'; did you mean 'isoscore'?
    """
    if name in FIGURES:
        return FIGURES.get(name)
    with suppress(InputError):
        return make_measure_figure(get(name))
    known = dict.fromkeys([*FIGURES.names(), *MEASURES.names()])
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "isotrope figure --list names them."
    raise InputError(f"there is no figure or measure {name!r}; {hint}")


def draw(run: str | Path, name: str, layer: str | int | None = None) -> Figure:
    """Draw a figure of a run folder, as wide as a column or a page of a paper.

    Args:
        run: the run folder.
        name: one of FIGURES, or a measure for its curve over the layers.
        layer: for figures of one layer, its name or number, negative ones from the end; by default the middle or the
            last layer, as the record of the figure says.

    Returns:
        matplotlib's Figure.
    """
    record = find_figure(name)
    return render(record, open_run(run, record, layer))


def open_run(run: str | Path, record: FigureRecord, layer: str | int | None = None) -> RunData:
    """Open a run for a figure; raises an error where the run lacks what the figure needs."""
    if layer is not None and record.layer is None:
        raise InputError(f"the figure {record.name!r} is not of a single layer; leave out the layer ({str(layer)!r}).")
    data = RunData(run)
    data.layer = data.find_layer(layer, record.layer)
    record.check_run(data)
    return data


def render(record: FigureRecord, data: RunData) -> Figure:
    """Draw a figure of an opened run."""
    with use_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(record.width, record.height), layout="constrained")
        try:
            record.draw(data, figure)
        except Undefined as reason:
            raise InputError(
                f"the figure {record.name!r} of {str(data.folder)!r} cannot be drawn: {reason}."
            ) from reason
    return figure


def format_caption(record: FigureRecord, data: RunData) -> str:
    """Format the caption: what the figure shows, of what run, after which paper."""
    source = data.findings.source
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    layer = f", layer {data.layer_name(data.layer)}" if record.layer else ""
    return f"{record.shows} Of {data.findings.title}{over}{layer}; after {record.answers}."


def check_file(path: Path) -> None:
    """Raise an error for a file that cannot be written, before anything is drawn."""
    if path.suffix.lower() not in _TIMELESS:
        kinds = ", ".join(_TIMELESS)
        raise StoreError(f"cannot write {str(path)!r} as a figure; give a file that ends in one of {kinds}.")
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a folder; give a file for the figure.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name} in; make it first.")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure atomically, and replace an existing file.

    Args:
        figure: matplotlib's Figure.
        path: a file that ends in .pdf, .svg or .png.
    """
    path = Path(path)
    check_file(path)
    kind = path.suffix.lower()
    with use_style():
        write_atomically(path, lambda target: figure.savefig(target, format=kind[1:], metadata=dict(_TIMELESS[kind])))
