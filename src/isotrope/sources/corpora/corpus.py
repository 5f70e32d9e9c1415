"""Texts from anywhere, always the same ones in the same order, in constant memory."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from isotrope.errors import InputError
from isotrope.registry import did_you_mean
from isotrope.sources.corpora.columns import WITH_COLUMNS, Cell, choose_column, text_cells
from isotrope.sources.corpora.datasets import dataset_columns, dataset_rows, load_split
from isotrope.sources.corpora.files import TABLES, TEXT_SUFFIXES, folder_files, format_of, read_files, suffix_of
from isotrope.sources.corpora.lines import (
    UNITS,
    decode_lines,
    manual_cells,
    pipe_blocks,
    read_spooled_lines,
    spool_blocks,
    stream_blocks,
)
from isotrope.sources.vectors.remote import describe_url, download, is_url
from isotrope.storage.files import PIPE, check_regular, special_kind
from isotrope.storage.provenance import describe_file

MANUAL = "python-manual"
#: The files that `save_to_disk` leaves in the folder of a dataset, and of a dataset with splits.
SAVED = (("dataset_info.json", "state.json"), ("dataset_dict.json",))
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(:\S+)?")


@dataclass(frozen=True, slots=True)
class Text:
    """One text, its place in the corpus (texts that are left out do not count) and its group."""

    id: int
    text: str
    group: str | None = None


@dataclass(eq=False)
class Corpus:
    """Texts that can be read any number of times.

    Attributes:
        read: Begins a new pass.
        facts: Gives plain data for provenance.
        stream: Whether a pass goes over a network.
        skipped: How many null and empty texts the last whole pass left out, None before there was one.

    >>> corpus = open_corpus(["one", " ", "two"])
    >>> [text.text for text in corpus], corpus.count(), corpus.skipped
    (['one', 'two'], 2, 1)
    """

    name: str
    read: Callable[[], Iterator[Cell]] = field(repr=False)
    facts: Callable[[], dict[str, Any]] = field(repr=False)
    stream: bool = False
    skipped: int | None = field(default=None, init=False)
    _count: int | None = field(default=None, init=False, repr=False)

    def __iter__(self) -> Iterator[Text]:
        number = skipped = 0
        for text, group in self.read():
            if text is None or not text.strip():
                skipped += 1
                continue
            yield Text(number, text, group)
            number += 1
        self.skipped, self._count = skipped, number

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance: kind, path, size and hash of what is read, and the options."""
        return self.facts()

    def count(self) -> int | None:
        """The number of texts, from one pass that is remembered; None for a stream."""
        if self._count is None and not self.stream:
            for _ in self:
                pass
        return None if self.stream else self._count


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """What can be asked of a corpus besides where it is; None where nothing is asked."""

    column: str | None = None
    split: str | None = None
    group_by: str | None = None
    unit: str | None = None

    def only(self, name: str, *known: str) -> None:
        """Refuse the options that this kind of corpus does not know."""
        for option, value in asdict(self).items():
            if value is not None and option not in known and (option, value) != ("unit", "line"):
                raise InputError(f"{name} cannot take {option}={value!r}; `{option}` works for {WHERE[option]}.")


WHERE = {
    "column": WITH_COLUMNS,
    "group_by": f"{WITH_COLUMNS}, and group_by='topic' for {MANUAL}",
    "split": "Hugging Face datasets",
    "unit": "plain text",
}


def open_corpus(
    source: str | Path | Sequence[str] | None = None,
    *,
    column: str | None = None,
    split: str | None = None,
    group_by: str | None = None,
    unit: str = "line",
) -> Corpus:
    """Open the texts of a file, a folder, a list, standard input, a dataset or the embedded default.

    The first text is read at once, so that an unusable input is reported before a model is loaded.

    Args:
        source: Path, dataset id, texts, "-" for standard input, or None for the embedded default.
        column: Column of the texts, where there are several.
        split: Split of a dataset.
        group_by: Column whose value is the group of a text.
        unit: What one text is in a plain file: "line" or "paragraph".

    Examples:
        >>> next(iter(open_corpus(group_by="topic")))
        Text(id=0, text='The "assert" statement', group='assert')
    """
    if unit not in UNITS:
        raise InputError(f"there is no unit {unit!r}{did_you_mean(unit, UNITS)}; choose one of: {', '.join(UNITS)}.")
    options = CorpusOptions(column, split, group_by, unit)
    if is_url(source):
        here = download(str(source))
        corpus = open_corpus(here, column=column, split=split, group_by=group_by, unit=unit)
        corpus.facts = partial(describe_url, corpus.facts, here, str(source))
        return corpus
    if source is None or isinstance(source, str | Path):
        corpus = NAMED.get(source, _from_place)(source, options)
    else:
        corpus = _from_memory(source, options)
    if next(iter(corpus), None) is None:
        raise InputError(f"no text in {corpus.name}: all of it is blank or null; give an input with some text.")
    return corpus


def _describe(kind: str, options: CorpusOptions, **facts: Any) -> dict[str, Any]:
    return {"kind": kind, **facts, **asdict(options)}


def _describe_texts(
    kind: str, options: CorpusOptions, read: Callable[[], Iterator[Cell]], **facts: Any
) -> dict[str, Any]:
    """Provenance of texts that stand in no file: the size and hash of the texts, a NUL after each."""
    digest, size = hashlib.sha256(), 0
    for text, _ in read():
        block = (text or "").encode("utf-8", "surrogatepass")
        digest.update(block + b"\0")
        size += len(block)
    return _describe(kind, options, bytes=size, sha256=digest.hexdigest(), **facts)


def _from_manual(source: object, options: CorpusOptions) -> Corpus:
    """The language reference, which every Python carries for help(), in paragraphs of three words or more."""
    options.only(MANUAL, "group_by", "unit")
    if options.group_by not in (None, "topic"):
        raise InputError(f"{MANUAL} has no column {options.group_by!r}; the only `group_by` there is 'topic'.")
    read = partial(manual_cells, options.group_by)
    asked = CorpusOptions(group_by=options.group_by, unit="paragraph")
    return Corpus(MANUAL, read, partial(_describe_texts, MANUAL, asked, read, python=platform.python_version()))


def _from_memory(source: Any, options: CorpusOptions) -> Corpus:
    name = "texts in memory"
    options.only(name)
    if isinstance(source, bytes | Set | Mapping) or not isinstance(source, Iterable):
        raise InputError(f"got a {type(source).__name__} as corpus; give a path, a dataset id or a list of strings.")
    texts: tuple[Any, ...] = tuple(source)
    for number, text in enumerate(texts):
        if not (text is None or isinstance(text, str)):
            raise InputError(f"item {number} of {name} is a {type(text).__name__}; give a list of strings.")
    cells: list[Cell] = [(text, None) for text in texts]
    read = partial(iter, cells)
    return Corpus(name, read, partial(_describe_texts, "memory", CorpusOptions(), read))


def _from_stream(name: str, blocks: Iterable[bytes], options: CorpusOptions) -> Corpus:
    """Plain text from a pipe, which can be read only once."""
    options.only(name, "unit")
    spool, facts = spool_blocks(blocks, name)
    if not facts["bytes"]:
        raise InputError(f"{name} is empty (0 bytes); give it some text.")
    read = partial(_stream_cells, spool, name, options.unit or "line")
    return Corpus(name, read, partial(_describe, "text", options, path=name, **facts))


def _stream_cells(spool: IO[bytes], name: str, unit: str) -> Iterator[Cell]:
    return text_cells(UNITS[unit](decode_lines(read_spooled_lines(spool, name), name)), name, "line", None, None)


def _from_stdin(source: object, options: CorpusOptions) -> Corpus:
    return _from_stream("standard input", stream_blocks(sys.stdin.buffer), options)


NAMED: dict[Any, Callable[[Any, CorpusOptions], Corpus]] = {
    None: _from_manual,
    MANUAL: _from_manual,
    "-": _from_stdin,
}


def _from_place(source: str | Path, options: CorpusOptions) -> Corpus:
    path = Path(source)
    if os.path.isdir(source):
        saved = any(all((path / name).is_file() for name in names) for names in SAVED)
        return _from_dataset(path, options, saved) if saved or options.split else _from_folder(path, options)
    if os.path.isfile(source):
        if not path.stat().st_size:
            raise InputError(f"{path} is empty (0 bytes); give a file with some text.")
        return _from_files(path, [path], options)
    if special_kind(path) == PIPE:  # such as the shell's <(command)
        return _from_stream(str(path), pipe_blocks(path), options)
    check_regular(path)
    known = suffix_of(path) in {*TABLES, *TEXT_SUFFIXES}
    if isinstance(source, str) and HUB_ID.fullmatch(source) and not known:
        return _from_dataset(source, options)
    if not os.path.isdir(path.parent):
        raise InputError(f"there is no file {str(source)!r}, nor the folder {str(path.parent)!r}; check the path.")
    raise InputError(f"there is no file {str(source)!r}{_suggest_name(path)}; check the path.")


def _suggest_name(path: Path) -> str:
    return did_you_mean(path.name, os.listdir(path.parent) if os.path.isdir(path.parent) else ())


def _from_files(place: Path, paths: Sequence[Path], options: CorpusOptions, **facts: Any) -> Corpus:
    form = format_of(paths[0], options.unit or "line")
    options.only(str(place), "column", "group_by", *(["unit"] if form.kind == "text" else []))
    # What the first file's columns say holds for all files and all passes.
    column = choose_column(str(paths[0]), form.columns(paths[0]), options.column, options.group_by)
    unit = options.unit if form.kind == "text" else None
    asked = CorpusOptions(column=column, group_by=options.group_by, unit=unit)
    return Corpus(
        place.resolve().name,
        partial(read_files, paths, form, column, options.group_by),
        partial(_describe_files, form.kind, place, paths, asked, facts),
    )


def _describe_files(
    kind: str, place: Path, paths: Sequence[Path], options: CorpusOptions, more: dict[str, Any]
) -> dict[str, Any]:
    files = [describe_file(path) for path in paths]
    if paths == [place]:
        return _describe(kind, options, **files[0])
    size = sum(file["bytes"] for file in files)
    return _describe(kind, options, path=str(place), bytes=size, files=files, **more)


def _from_folder(folder: Path, options: CorpusOptions) -> Corpus:
    paths, left_out = folder_files(folder)
    kinds = {format_of(path, "line").kind: path.relative_to(folder) for path in reversed(paths)}
    if len(kinds) > 1:
        examples = ", ".join(sorted(f"{kind} ({path})" for kind, path in kinds.items()))
        raise InputError(
            f"{folder} holds files of several kinds: {examples}; give a folder with one kind, one of the "
            "files, or a `split` if it is the folder of a Hugging Face dataset."
        )
    return _from_files(folder, paths, options, files_left_out=left_out)


def _from_dataset(source: str | Path, options: CorpusOptions, saved: bool = False) -> Corpus:
    options.only(str(source), "column", "group_by", "split")
    hint = "" if isinstance(source, Path) else _suggest_name(Path(source))
    data, split = load_split(source, options.split, saved=saved, hint=hint)
    column = choose_column(str(source), dataset_columns(data, str(source)), options.column, options.group_by)
    asked = CorpusOptions(column=column, split=split, group_by=options.group_by)
    return Corpus(
        source.resolve().name if isinstance(source, Path) else source,
        partial(_dataset_cells, data, str(source), column, options.group_by),
        partial(_describe, "dataset", asked, path=str(source), fingerprint=getattr(data, "_fingerprint", None)),
        stream=not saved,
    )


def _dataset_cells(data: Any, name: str, column: str | None, group_by: str | None) -> Iterator[Cell]:
    keep = [known for known in dict.fromkeys((column, group_by)) if known is not None]
    return text_cells(dataset_rows(data, name, keep), name, "row", column, group_by)
