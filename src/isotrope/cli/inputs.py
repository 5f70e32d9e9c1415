"""What the INPUT of a command is: vectors, a text, a model, or a run; and the one space that a repair is of."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.layers import Layer, resolve_layer
from isotrope.options import find_changes
from isotrope.runs.run import Run
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.sources.text.pooling import parse as parse_pooling
from isotrope.sources.vectors.remote import is_url
from isotrope.sources.vectors.source import ENDINGS, OPENERS
from isotrope.sources.vectors.stores.address import parse
from isotrope.storage.redaction import mask_secrets


def resolve_input(input: str | None, reading: Input, corpus: str | None = None) -> Input:
    """Give INPUT the role that is left, by what it is.

    Args:
        input: The argument INPUT of a command: vectors, a text or a model.
        reading: The model, text or vectors that options name.
        corpus: A named corpus, in place of a text.

    >>> resolve_input("rows.npy", Input()).vectors
    'rows.npy'
    """
    if reading.text is not None and corpus is not None:
        raise InputError("got --text and --corpus; give one of them.")
    if corpus is not None:
        reading = replace(reading, text=corpus)
    if input is None:
        return reading
    if reading.vectors is not None:
        raise InputError(f"got the vectors {reading.vectors!r} and also {input!r}; give one of them.")
    if (reading.model is not None or reading.text is not None) and _holds_vectors(input):
        given = "model" if reading.model is not None else "text"
        raise InputError(f"{input!r} holds vectors, and vectors take no {given}; leave out --{given}.")
    if reading.model is not None and reading.text is not None:
        raise InputError(f"got a model, a text and also {input!r}; leave one out.")
    role = "text" if reading.model is not None else "model" if reading.text is not None else _find_role(input)
    if role == "vectors":
        return replace(reading, vectors=input)
    return replace(reading, model=input) if role == "model" else replace(reading, text=input)


def make_folder_name(reading: Input) -> str:
    """Make a short name for the folder of a run."""
    store = parse(reading.vectors) if reading.vectors else None
    chosen = (store and (store.name or str(store))) or reading.vectors or reading.model or "all-MiniLM-L6-v2"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(chosen).name or "run").strip("-.") or "run"


def _holds_vectors(input: str) -> bool:
    """Whether an input is vectors and nothing else: a store, or a file that can hold no text, images or sounds."""
    return parse(input) is not None or Path(input).suffix.lower() in _NUMBERS_ALONE


#: Files that hold arrays of numbers, where tables may hold text.
_NUMBERS_ALONE = (".npy", ".npz", ".safetensors", ".h5", ".hdf5")

#: Files of a folder that are looked at, to offer those that are vectors.
_LOOKED_AT = 10_000


@contextmanager
def offer_vectors(reading: Input) -> Iterator[None]:
    """Add to an error about a folder, or about a file in it, the command that scans other vectors of that folder."""
    try:
        yield
    except InputError as error:
        source = reading.vectors or reading.text
        folder = Path(source or "")
        files = _find_vectors(folder) if source and folder.is_dir() else []
        if reading.vectors is not None:
            good = [path for path in files if path.name not in str(error)]
            files = good if len(good) < len(files) else []  # else the error is not about a file
        if not files:
            raise
        found = files[0] if files[0].parent == folder else files[0].parent
        command = shlex.join(["isotrope", "scan", str(found)])
        raise InputError(f"{str(error).rstrip('.')}; type {command} to scan vectors that lie in it.") from error


def _find_vectors(folder: Path) -> list[Path]:
    """The files of vectors in a folder and in those below it, its own first."""
    files = [path for path in islice(folder.rglob("*"), _LOOKED_AT) if path.suffix.lower() in _NUMBERS_ALONE]
    return sorted((path for path in files if path.is_file()), key=lambda path: (path.parent != folder, path))


def _find_role(input: str) -> str:
    """INPUT on its own: vectors by its address or ending, a model by its files, else a text for the embedded model."""
    if parse(input) is not None:
        return "vectors"
    path = Path(input)
    if is_url(input):
        if path.suffix:
            return "vectors" if path.suffix.lower() in OPENERS else "text"
        raise InputError(f"{mask_secrets(input)!r} may hold anything; say what with --vectors, --text or --model.")
    if path.is_dir():
        if any((path / name).exists() for name in ("config.json", "modules.json")) or any(path.glob("*.gguf")):
            return "model"
        return "vectors" if any(p.suffix.lower() in ENDINGS for p in path.iterdir()) else "text"
    if path.suffix.lower() in ENDINGS:
        return "vectors"
    if path.suffix.lower() in (".gguf", ".onnx"):
        return "model"
    if path.exists() or input == "-":
        return "text"
    if (path.suffix and "/" not in input) or ("/" in input and path.parent.is_dir()):
        raise InputError(f"there is no file {input!r}; check the path.")
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", input):
        return "model"
    raise InputError(f"there is no file or model {input!r}; check the path, or give a model's hub id or folder.")


def is_run(input: str) -> bool:
    """Whether an input is a run folder rather than vectors; what is neither counts as a run, which then is missing."""
    if Run(input).finished or Run(input).resumable:
        return True
    try:
        return _find_role(input) != "vectors"
    except InputError:
        return True


@contextmanager
def open_space(input: str | None, reading: Input, engine: Engine | None = None, **more: Any) -> Iterator[Source]:
    """Open the source of one layer.

    Args:
        input: Vectors, a text or a model.
        reading: How they are read; layers are None for the default one.
        engine: Where they are read, by default in this process.
        more: Fields of the reading that the command itself decides.
    """
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
    """Raise an error for options on how rows are read where no rows are read.

    Args:
        reading: The options.
        what: What has no use for them.
        layer: Whether it has no use for a layer either.
    """
    unused = find_changes(replace(reading, layers="all"))
    if layer and reading.layers is not None:
        unused["layer"] = reading.layers
    for name, value in unused.items():
        raise InputError(f"{what} has no use for --{name.replace('_', '-')} ({value!r}); leave it out.")


def find_run_layer(folder: str, asked: str | None) -> tuple[Layer, dict[str, Any]]:
    """The layer of a run that is asked for, by default the last, and what it is of; negative ones count backwards."""
    findings = Run(folder).findings()
    wanted = resolve_layer(asked or "-1", findings.layers, findings.layer_names, run=f"the run {folder!r}")
    return wanted, {**findings.source, "layers": [wanted], "run": folder}


def _choose_layer(reading: Input) -> str:
    """The layer asked for, or the last one, unless the rows have none or the pooling names its own."""
    if reading.layers is not None or reading.vectors is not None:
        return reading.layers or "all"
    return "all" if reading.pooling and parse_pooling(reading.pooling).layers else "-1"
