"""Draws a figure of a run by its name, and writes it as PDF, SVG or PNG."""

from __future__ import annotations

import difflib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.drawing.style import style
from isotrope.errors import InputError, StoreError, Undefined
from isotrope.figures.measure_curve import measure_curve
from isotrope.figures.record import FIGURES, FigureRecord
from isotrope.figures.run_data import RunData
from isotrope.measures import MEASURES, get
from isotrope.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The kinds of file, and what stands in them in place of the day on which they were made.
_TIMELESS: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}


def find(name: str) -> FigureRecord:
    """The record of a figure, or of the curve of any measure over the layers.

    >>> find("isoscor")
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no figure or measure 'isoscor'; did you mean 'isoscore'?
    """
    if name in FIGURES:
        return FIGURES.get(name)
    with suppress(InputError):
        return measure_curve(get(name))
    known = dict.fromkeys([*FIGURES.names(), *MEASURES.names()])
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "isotrope figure --list names them."
    raise InputError(f"there is no figure or measure {name!r}; {hint}")


def draw(run: str | Path, name: str, layer: str | int | None = None) -> Figure:
    """A figure of a run folder as matplotlib's Figure, as wide as a column or a page of a paper.

    name: one of FIGURES, or a measure for its curve over layers. layer: for figures of one layer, by name or number,
    negative ones from the end; by default the middle or the last, as its record says.
    """
    record = find(name)
    return render(record, opened(run, record, layer))


def opened(run: str | Path, record: FigureRecord, layer: str | int | None = None) -> RunData:
    """What a figure reads of a run; refused where the run lacks some of it."""
    if layer is not None and record.layer is None:
        raise InputError(f"the figure {record.name!r} is not of a single layer; leave out the layer ({str(layer)!r}).")
    data = RunData(run)
    data.layer = data.find_layer(layer, record.layer)
    data.refuse_lack(record)
    return data


def render(record: FigureRecord, data: RunData) -> Figure:
    """The figure of what was read."""
    with style():
        from matplotlib.figure import Figure

        made = Figure(figsize=(record.width, record.height), layout="constrained")
        try:
            record.draw(data, made)
        except Undefined as reason:
            raise InputError(
                f"the figure {record.name!r} of {str(data.folder)!r} cannot be drawn: {reason}."
            ) from reason
    return made


def caption(record: FigureRecord, data: RunData) -> str:
    """What stands under the figure: what it shows, of what, after whom."""
    source = data.findings.source
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    layer = f", layer {data.name(data.layer)}" if record.layer else ""
    return f"{record.shows} Of {data.findings.title}{over}{layer}; after {record.answers}."


def refuse_file(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is drawn."""
    if path.suffix.lower() not in _TIMELESS:
        kinds = ", ".join(_TIMELESS)
        raise StoreError(f"cannot write {str(path)!r} as a figure; give a file that ends in one of {kinds}.")
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a folder; give a file for the figure.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name} in; make it first.")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, whole or not at all, in place of one that is there; its ending says the kind of file."""
    path = Path(path)
    refuse_file(path)
    kind = path.suffix.lower()
    with style():
        write_atomically(path, lambda beside: figure.savefig(beside, format=kind[1:], metadata=dict(_TIMELESS[kind])))
