"""Images or sounds from anywhere, always the same ones in the same order, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.errors import InputError, describe_error
from isotrope.registry import did_you_mean
from isotrope.sources.batch import shorten_label
from isotrope.sources.corpora.corpus import HUB_ID, SAVED
from isotrope.sources.corpora.datasets import dataset_rows, load_split
from isotrope.sources.corpora.files import arrow_errors, plain_rows, walk
from isotrope.sources.models.modality import WORDS
from isotrope.sources.vectors.remote import describe_url, download, is_url
from isotrope.storage.files import check_regular
from isotrope.storage.provenance import describe_file

#: Endings of files.
SUFFIXES = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"),
    "audio": (".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff", ".aif", ".au"),
}

#: The group of a file is the folder it lies in, as image sets are usually laid out.
FOLDER = "folder"

_TABLES = (".parquet", ".arrow", ".feather", ".ipc")

#: What a column of images or sounds holds, as Hugging Face datasets store them.
_BYTES, _PATH = "bytes", "path"

_ROWS = 16


class Item(NamedTuple):
    """One image or sound: its place among all, what holds it (a path, bytes, or the thing itself), and its group."""

    id: int
    data: Any
    group: str | None = None


#: What holds an image or sound, and its group.
Cell = tuple[Any, str | None]


@dataclass(eq=False)
class Media:
    """Images or sounds that can be read any number of times; facts: for provenance. total: None for a stream."""

    name: str
    read: Callable[[], Iterator[Cell]] = field(repr=False)
    facts: Callable[[], dict[str, Any]] = field(repr=False)
    total: int | None = None

    def __iter__(self) -> Iterator[Item]:
        return (Item(number, data, group) for number, (data, group) in enumerate(self.read()))

    def count(self) -> int | None:
        """The number of images or sounds, None for a stream."""
        return self.total

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return self.facts()


def kind_of(source: Any) -> str | None:
    """What a file, a folder or a list holds: "image", "audio", or None where neither the endings nor the things tell.

    >>> kind_of(["a.wav"]), kind_of(["a text"])
    ('audio', None)
    """
    items: Iterable[Any] = source[:1] if isinstance(source, (list, tuple)) else ()
    if isinstance(source, (str, Path)):
        path = Path(source).expanduser()
        items = walk(path) if path.is_dir() else [path] if path.is_file() else []
    return next((kind for kind in map(_kind, items) if kind is not None), None)


def choose_modality(can: Sequence[str], source: Any, **options: str | None) -> str:
    """What is given, of the things that a model can read: what `kind_of` tells, or what a table or dataset holds."""
    kind = kind_of(source)
    if kind is None and (_is_dataset(source) or (isinstance(source, (str, Path)) and not _is_other_file(source))):
        kind = next((known for known in can if known in SUFFIXES and _opens(source, known, options)), None)
    return kind or can[0]


def _opens(source: Any, kind: str, options: Mapping[str, str | None]) -> bool:
    try:
        open_media(source, kind, **options)
    except InputError:
        return False
    return True


def _is_other_file(source: str | Path) -> bool:
    path = Path(source).expanduser()
    return path.is_file() and path.suffix.lower() not in _TABLES


def _is_dataset(data: Any) -> bool:
    """Whether something is a dataset of Hugging Face's library, in memory or streaming."""
    return hasattr(data, "cast_column") and hasattr(data, "features")


def _kind(item: Any) -> str | None:
    if isinstance(item, (str, Path)):
        ending = Path(item).suffix.lower()
        return next((kind for kind, endings in SUFFIXES.items() if ending in endings), None)
    return "audio" if isinstance(item, tuple) else "image" if hasattr(item, "convert") else None


def open_media(
    source: Any, modality: str, *, column: str | None = None, split: str | None = None, group_by: str | None = None
) -> Media:
    """The images or sounds of a file, a folder, a parquet or arrow file, a dataset, its id or its folder, or a list.

    group_by: a column, or "folder" for files.

    >>> media = open_media([b"...", "a.png"], "image")
    >>> [item.data for item in media], media.total
    ([b'...', 'a.png'], 2)
    """
    what = WORDS[modality]
    if source is None:
        raise InputError(f"got no {what}; give a file, a folder, or a dataset of {what}.")
    if is_url(source):
        here = download(str(source))
        media = open_media(here, modality, column=column, split=split, group_by=group_by)
        media.facts = partial(describe_url, media.facts, here, str(source))
        return media
    if _is_dataset(source):
        return _from_dataset("a dataset", source, split or str(source.split), column, group_by, modality)
    if not isinstance(source, (str, Path)):
        return _from_memory(list(source), column or split or group_by)
    path = Path(source).expanduser()
    check_regular(path)
    if any(all((path / name).is_file() for name in names) for names in SAVED):
        return _from_dataset(path, *load_split(path, split, saved=True), column, group_by, modality)
    if path.is_dir() and split is None:
        files = sorted(walk(path), key=lambda p: p.relative_to(path).as_posix())
        tables = [p for p in files if p.suffix.lower() in _TABLES]
        found = [p for p in files if p.suffix.lower() in SUFFIXES[modality]]
        if tables and not found:
            return _from_tables(path, tables, column, group_by, modality)
        if not found:
            endings = ", ".join(SUFFIXES[modality])
            raise InputError(f"no {what} in {path}: none of its {len(files)} files ends in {endings}.")
        return _from_files(path, found, column, group_by)
    if path.is_file():
        if path.suffix.lower() in _TABLES:
            return _from_tables(path, [path], column, group_by, modality)
        return _from_files(path, [path], column, group_by)
    if path.is_dir() or (isinstance(source, str) and HUB_ID.fullmatch(source) and not path.suffix):
        place = path if path.is_dir() else str(source)
        return _from_dataset(place, *load_split(place, split), column, group_by, modality)
    raise InputError(f"there is no file or folder {str(source)!r}; check the path.")


def _from_memory(items: list[Any], option: str | None) -> Media:
    if option is not None:
        raise InputError(f"a list has no use for {option!r}; leave column, split and group_by out.")
    return Media(
        "a list", lambda: ((item, None) for item in items), lambda: {"kind": "memory", "items": len(items)}, len(items)
    )


def _from_files(place: Path, paths: list[Path], column: str | None, group_by: str | None) -> Media:
    if column is not None or group_by not in (None, FOLDER):
        raise InputError(
            f"files have no columns, got {column or group_by!r}; the only group_by for them is {FOLDER!r}."
        )

    def read() -> Iterator[Cell]:
        return ((path, path.parent.name if group_by else None) for path in paths)

    return Media(place.resolve().name, read, partial(_listing, place, paths, group_by), len(paths))


def _listing(place: Path, paths: list[Path], group_by: str | None) -> dict[str, Any]:
    """Sizes and a hash of names and sizes: hashing what may be a million files would cost more than it tells."""
    if paths == [place]:
        return {"kind": "file", **describe_file(place), "group_by": group_by}
    digest, total = hashlib.sha256(), 0
    for path in paths:
        size = path.stat().st_size
        total += size
        digest.update(f"{path.relative_to(place).as_posix()}\0{size}\0".encode())
    facts = {"path": str(place), "files": len(paths), "bytes": total, "sha256_names": digest.hexdigest()}
    return {"kind": "folder", **facts, "group_by": group_by}


def _from_tables(place: Path, paths: list[Path], column: str | None, group_by: str | None, modality: str) -> Media:
    import pyarrow.dataset as ds

    form = "parquet" if paths[0].suffix.lower() == ".parquet" else "ipc"
    try:
        table = ds.dataset([str(p) for p in paths], format=form)
        total = table.count_rows()
        columns_held = {f.name: _holds_bytes(f.type) for f in table.schema}
    except (OSError, ValueError) as error:
        raise InputError(f"{place} cannot be read as {form} ({describe_error(error)}); check the file.") from error
    chosen = _choose(str(place), columns_held, column, group_by, modality)
    columns = list(dict.fromkeys(filter(None, (chosen, group_by))))

    def read() -> Iterator[Cell]:
        with arrow_errors(place):
            for batch in table.to_batches(columns=columns, batch_size=_ROWS, batch_readahead=1, fragment_readahead=1):
                yield from _cells(plain_rows(batch), chosen, group_by)

    def facts() -> dict[str, Any]:
        files = [describe_file(p) for p in paths]
        return {"kind": form, "path": str(place), "files": files, "column": chosen, "group_by": group_by}

    return Media(place.resolve().name, read, facts, total)


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return any(field.name == _BYTES for field in kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _choose(name: str, columns: Mapping[str, bool], column: str | None, group_by: str | None, modality: str) -> str:
    """The column asked for, or the only one that holds bytes."""
    listed = ", ".join(columns)
    for asked in filter(None, (column, group_by)):
        if asked not in columns:
            raise InputError(f"{name} has no column {asked!r}{did_you_mean(asked, columns)}; choose one of: {listed}.")
    found = [column] if column else [known for known, holds in columns.items() if holds]
    if len(found) != 1 or not columns[found[0]]:
        many = "several columns" if len(found) > 1 else "no column"
        raise InputError(f"{name} has {many} of {WORDS[modality]} as bytes; choose it with `column`, of: {listed}.")
    return found[0]


def _cells(rows: Iterable[dict[str, Any]], column: str, group_by: str | None) -> Iterator[Cell]:
    for row in rows:
        data = row[column]
        if isinstance(data, Mapping):  # bytes, or where these are missing a path
            data = data.get(_BYTES) or data.get(_PATH)
        group = None if group_by is None else "null" if row[group_by] is None else shorten_label(str(row[group_by]))
        yield data, group


def _from_dataset(
    source: str | Path, data: Any, split: str, column: str | None, group_by: str | None, modality: str
) -> Media:
    import datasets

    kind = {"image": datasets.Image, "audio": datasets.Audio}[modality]
    features = data.features or {}
    column = _choose(str(source), {k: isinstance(f, kind) for k, f in features.items()}, column, group_by, modality)
    data = data.cast_column(column, kind(decode=False))  # broken ones are counted here, not raised there
    keep = list(dict.fromkeys(filter(None, (column, group_by))))

    def read() -> Iterator[Cell]:
        for _, row in dataset_rows(data, str(source), keep):
            yield from _cells([row], column, group_by)

    def facts() -> dict[str, Any]:
        fingerprint = getattr(data, "_fingerprint", None)
        about = {"kind": "dataset", "path": str(source), "split": split, "fingerprint": fingerprint}
        return about | {"column": column, "group_by": group_by}

    name = source.resolve().name if isinstance(source, Path) else source
    return Media(name, read, facts, len(data) if hasattr(data, "__len__") else None)


def as_file(data: Any) -> Any:
    """What holds an image or a sound, as a file that can be opened; other things as they are."""
    if isinstance(data, (str, Path)):
        check_regular(data)
        return str(data)
    return BytesIO(data) if isinstance(data, (bytes, bytearray)) else data
