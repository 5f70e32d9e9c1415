"""The one space that a repair is of: options that say where its rows come from, and the source they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from isotrope.layers import Layer
    from isotrope.sources.source import Source

_ROWS = "Rows"

Model: TypeAlias = Annotated[
    str | None, typer.Option(help="Hub id, folder, GGUF or ONNX file, with --text.", rich_help_panel=_ROWS)
]
Revision: TypeAlias = Annotated[str | None, typer.Option(help="Revision of a hub model.", rich_help_panel=_ROWS)]
GgufFile: TypeAlias = Annotated[str | None, typer.Option(help="GGUF file in the folder.", rich_help_panel=_ROWS)]
Text: TypeAlias = Annotated[
    str | None, typer.Option(help="Text file, folder, dataset id, or - for stdin.", rich_help_panel=_ROWS)
]
Vectors: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="File or folder of npy, npz, safetensors, parquet, arrow, HDF5, faiss; or a store.", rich_help_panel=_ROWS
    ),
]
Column: TypeAlias = Annotated[
    str | None, typer.Option(help="Column or array to read, where there are several.", rich_help_panel=_ROWS)
]
Split: TypeAlias = Annotated[str | None, typer.Option(help="Split of a dataset.", rich_help_panel=_ROWS)]
Pooling: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="One row per text: mean, cls, last, max, weightedmean, first+last, mean:1+-1.",
        show_default="rows are tokens",
        rich_help_panel=_ROWS,
    ),
]
OneLayer: TypeAlias = Annotated[
    str | None, typer.Option("--layer", help="One layer, e.g. 6 or -2.", show_default="last", rich_help_panel=_ROWS)
]
Averaged: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Only these, averaged, e.g. -1 or 1,-1.", show_default="last, or a mix", rich_help_panel=_ROWS),
]
MaxLength: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Tokens at which texts are cut.", show_default="512 or the model's", rich_help_panel=_ROWS),
]
BatchSize: TypeAlias = Annotated[
    int | None, typer.Option(help="Texts, or rows, at a time.", show_default="32 texts", rich_help_panel=_ROWS)
]
Device: TypeAlias = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=_ROWS)]
TrustRemoteCode: TypeAlias = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let a model run its own code.", rich_help_panel=_ROWS)
]
BadFiles: TypeAlias = Annotated[
    str, typer.Option(help="stop at a file of vectors that cannot be read, or skip it.", rich_help_panel=_ROWS)
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@contextmanager
def open_space(given: Mapping[str, Any], **more: Any) -> Iterator[Source]:
    """The source of one layer that a command's arguments name; more: settings that the command itself decides."""
    from isotrope.cli.inputs import sort_out
    from isotrope.engines.engine import Engine
    from isotrope.errors import InputError
    from isotrope.runs.run import Run
    from isotrope.sources.input import Input

    place = sort_out(given["input"], model=given["model"], text=given["text"], corpus=None, vectors=given["vectors"])
    if given["input"] is not None and Run(given["input"]).finished:
        raise InputError(
            f"{given['input']!r} is the run folder of a scan, which does not hold all rows; give the rows."
        )
    if (place.model, place.text, place.vectors) == (None, None, None):
        raise InputError("got no rows; name a file of vectors, or --model and --text.")
    reading = replace(Input.among(given), model=place.model, text=place.text, vectors=place.vectors, **more)
    with Engine.among(given).open(replace(reading, layers=_layer(given["layer"], reading))) as source:
        if len(source.layers) != 1:
            layers = ", ".join(map(str, source.layers))
            raise InputError(f"got the layers {layers}, expected one: a repair is of one space; name it with --layer.")
        yield source


def refuse_reading(given: Mapping[str, Any], what: str, *others: str) -> None:
    """Refuse options on how rows are read where none are; others: names of more that are None unless given."""
    from isotrope.errors import InputError
    from isotrope.sources.input import Input

    defaults = {f.name: f.default for f in fields(Input)} | dict.fromkeys(others)
    for name, default in defaults.items():
        if name in given and given[name] != default:
            raise InputError(f"{what} has no use for --{name.replace('_', '-')} ({given[name]!r}); leave it out.")


def run_layer(folder: str, asked: str | None) -> tuple[Layer, dict[str, Any]]:
    """The layer of a run that is asked for, by default the last, and what it is of; negative ones count backwards."""
    from isotrope.layers import resolve_layer
    from isotrope.runs.run import Run

    findings = Run(folder).findings()
    wanted = resolve_layer(asked or "-1", findings.layers, findings.layer_names, run=f"the run {folder!r}")
    return wanted, {**findings.source, "layers": [wanted], "run": folder}


def _layer(asked: str | None, reading: Any) -> str:
    """The layer asked for, or the last one, unless the rows have none or the pooling names its own."""
    from isotrope.sources.text.pooling import parse

    if asked is not None or reading.vectors is not None:
        return asked or "all"
    return "all" if reading.pooling and parse(reading.pooling).layers else "-1"
