"""The one space that a repair is of: the source of its rows, or the layer of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotrope.engines.engine import Engine
from isotrope.options import find_changes
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.layers import Layer
    from isotrope.sources.source import Source


@contextmanager
def open_space(input: str | None, reading: Input, engine: Engine | None = None, **more: Any) -> Iterator[Source]:
    """Open the source of one layer.

    Args:
        input: Vectors, a text or a model.
        reading: How they are read; layers are None for the default one.
        engine: Where they are read, by default in this process.
        more: Fields of the reading that the command itself decides.
    """
    from isotrope.cli.inputs import resolve_input
    from isotrope.errors import InputError
    from isotrope.runs.run import Run

    reading = replace(resolve_input(input, reading), **more)
    if input is not None and Run(input).finished:
        raise InputError(f"{input!r} is the run folder of a scan, which does not hold all rows; give the rows.")
    if (reading.model, reading.text, reading.vectors) == (None, None, None):
        raise InputError("got no rows; name a file of vectors, or --model and --text.")
    with (engine or Engine()).open(replace(reading, layers=_choose_layer(reading))) as source:
        if len(source.layers) != 1:
            layers = ", ".join(map(str, source.layers))
            raise InputError(f"got the layers {layers}, expected one: a repair is of one space; name it with --layer.")
        yield source


def check_unused(reading: Input, what: str, *, layer: bool = False) -> None:
    """Refuse options on how rows are read where none are.

    Args:
        reading: The options.
        what: What has no use for them.
        layer: Whether it has no use for a layer either.
    """
    from isotrope.errors import InputError

    unused = find_changes(replace(reading, layers="all"))
    if layer and reading.layers is not None:
        unused["layer"] = reading.layers
    for name, value in unused.items():
        raise InputError(f"{what} has no use for --{name.replace('_', '-')} ({value!r}); leave it out.")


def find_run_layer(folder: str, asked: str | None) -> tuple[Layer, dict[str, Any]]:
    """The layer of a run that is asked for, by default the last, and what it is of; negative ones count backwards."""
    from isotrope.layers import resolve_layer
    from isotrope.runs.run import Run

    findings = Run(folder).findings()
    wanted = resolve_layer(asked or "-1", findings.layers, findings.layer_names, run=f"the run {folder!r}")
    return wanted, {**findings.source, "layers": [wanted], "run": folder}


def _choose_layer(reading: Input) -> str:
    """The layer asked for, or the last one, unless the rows have none or the pooling names its own."""
    from isotrope.sources.text.pooling import parse

    if reading.layers is not None or reading.vectors is not None:
        return reading.layers or "all"
    return "all" if reading.pooling and parse(reading.pooling).layers else "-1"
