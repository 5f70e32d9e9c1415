"""What the INPUT of a command is: vectors, a text or a model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from isotrope.errors import InputError
from isotrope.sources.vectors.remote import is_url
from isotrope.sources.vectors.source import ENDINGS, OPENERS
from isotrope.sources.vectors.stores.address import parse
from isotrope.storage.redaction import mask_secrets


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from: vectors, or a model over a text (None for the embedded ones), and a short name."""

    model: str | None = None
    text: str | None = None
    vectors: str | None = None

    @property
    def name(self) -> str:
        """A short name for a folder."""
        store = parse(self.vectors) if self.vectors else None
        chosen = (store and (store.name or str(store))) or self.vectors or self.model or "all-MiniLM-L6-v2"
        return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(chosen).name or "run").strip("-.") or "run"


def sort_out(
    input: str | None, *, model: str | None, text: str | None, corpus: str | None, vectors: str | None
) -> Place:
    """Give INPUT the role that is left, by what it is."""
    if text is not None and corpus is not None:
        raise InputError("got --text and --corpus; give one of them.")
    text = text if text is not None else corpus
    if vectors is not None:
        if input is not None:
            raise InputError(f"got the vectors {vectors!r} and also {input!r}; give one of them.")
        return Place(model, text, vectors)
    if input is None:
        return Place(model, text)
    if (model is not None or text is not None) and _holds_vectors(input):
        given = "model" if model is not None else "text"
        raise InputError(f"{input!r} holds vectors, and vectors take no {given}; leave out --{given}.")
    if model is not None:
        if text is not None:
            raise InputError(f"got a model, a text and also {input!r}; leave one out.")
        return Place(model, input)
    if text is not None:
        return Place(input, text)
    return _by_kind(input)


def _holds_vectors(input: str) -> bool:
    """Whether an input is vectors and nothing else: a store, or a file that can hold no text, images or sounds."""
    return parse(input) is not None or Path(input).suffix.lower() in _NUMBERS_ALONE


#: Files that hold arrays of numbers, where tables may hold text.
_NUMBERS_ALONE = (".npy", ".npz", ".safetensors", ".h5", ".hdf5")

#: Files of a folder that are looked at, to offer those that are vectors.
_LOOKED_AT = 10_000


@contextmanager
def vectors_offered(place: Place) -> Iterator[None]:
    """Add to the refusal of a folder, or of a file in it, the command that scans other vectors which lie there."""
    try:
        yield
    except InputError as error:
        folder = Path(place.vectors or place.text or "")
        files = _vectors_in(folder) if (place.vectors or place.text) and folder.is_dir() else []
        if place.vectors is not None:
            good = [path for path in files if path.name not in str(error)]
            files = good if len(good) < len(files) else []  # else the refusal is not of a file
        if not files:
            raise
        found = files[0] if files[0].parent == folder else files[0].parent
        command = shlex.join(["isotrope", "scan", str(found)])
        raise InputError(f"{str(error).rstrip('.')}; type {command} to scan vectors that lie in it.") from error


def _vectors_in(folder: Path) -> list[Path]:
    """The files of vectors in a folder and in those below it, its own first."""
    files = [path for path in islice(folder.rglob("*"), _LOOKED_AT) if path.suffix.lower() in _NUMBERS_ALONE]
    return sorted((path for path in files if path.is_file()), key=lambda path: (path.parent != folder, path))


def _by_kind(input: str) -> Place:
    """INPUT on its own: vectors by its address or ending, a model by its files, else a text for the embedded model."""
    if parse(input) is not None:
        return Place(vectors=input)
    path = Path(input)
    if is_url(input):
        if path.suffix:
            return Place(vectors=input) if path.suffix.lower() in OPENERS else Place(text=input)
        raise InputError(f"{mask_secrets(input)!r} may hold anything; say what with --vectors, --text or --model.")
    if path.is_dir():
        if any((path / name).exists() for name in ("config.json", "modules.json")) or any(path.glob("*.gguf")):
            return Place(model=input)
        if any(p.suffix.lower() in ENDINGS for p in path.iterdir()):
            return Place(vectors=input)
        return Place(text=input)
    if path.suffix.lower() in ENDINGS:
        return Place(vectors=input)
    if path.suffix.lower() in (".gguf", ".onnx"):
        return Place(model=input)
    if path.exists() or input == "-":
        return Place(text=input)
    if (path.suffix and "/" not in input) or ("/" in input and path.parent.is_dir()):
        raise InputError(f"there is no file {input!r}; check the path.")
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", input):
        return Place(model=input)
    raise InputError(f"there is no file or model {input!r}; check the path, or give a model's hub id or folder.")
