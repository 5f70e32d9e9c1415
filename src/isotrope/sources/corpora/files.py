"""Readers of text from files, one small generator per format, and the table from extension to reader."""

from __future__ import annotations

import codecs
import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, describe_error
from isotrope.sources.corpora.columns import (
    Cell,
    Row,
    choose_column,
    head_columns,
    is_no_number,
    is_string,
    text_cells,
)
from isotrope.sources.corpora.lines import LONGEST, UNITS, decode_lines, file_lines
from isotrope.sources.record_batches import ipc_batches, open_ipc_reader, parquet_batches

SLICE = 1024  # rows of an Arrow batch that become Python objects at a time
JSON_LIMIT = 2**30
SNIFFED = 8192  # bytes of a file of unknown extension in a folder that show whether it is text
STRINGS = ("string", "large_string", "string_view")
ARROW_STRINGS = {*STRINGS, *(f"dictionary<values={name}" for name in STRINGS)}


# One generator of rows per format; `keep` names the wanted columns, for formats that can skip the others


def text_rows(path: Path, keep: Sequence[str], unit: str) -> Iterator[Row]:
    return UNITS[unit](decode_lines(file_lines(path), str(path)))


def parse_json(source: str, where: str) -> Any:
    try:
        value = json.loads(source)
        if "\\u" in source:  # only an escape can bring half a surrogate pair, which no tokenizer takes
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is not valid JSON ({error.msg} at character {error.pos + 1}); correct it, "
            "or name the file .jsonl, .json or .txt after what it holds."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} cannot be read as JSON ({error}); correct or remove it.") from error
    return value


def jsonl_rows(path: Path, keep: Sequence[str]) -> Iterator[Row]:
    for number, line in decode_lines(file_lines(path), str(path)):
        if line.strip():
            yield number, parse_json(line, f"line {number} of {path}")


def json_rows(path: Path, keep: Sequence[str]) -> Iterator[Row]:
    if path.stat().st_size > JSON_LIMIT:
        raise InputError(f"{path} is over {JSON_LIMIT / 2**30:g} GiB of JSON; convert it to JSON Lines (.jsonl).")
    lines, length = [], 0
    for _, line in decode_lines(file_lines(path), str(path)):
        lines.append(line)
        length += len(line)
        if length > JSON_LIMIT:  # of a packed file, which is shorter
            raise InputError(f"{path} is over {JSON_LIMIT / 2**30:g} GiB of JSON; convert it to JSON Lines (.jsonl).")
    value = parse_json("".join(lines), str(path))
    if not isinstance(value, list):
        raise InputError(f"{path} holds a JSON {type(value).__name__}; give a list of strings or of objects.")
    yield from enumerate(value, 1)


def csv_rows(path: Path, keep: Sequence[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)  # the default of 128 KiB is less than a long document
    lines = (line for _, line in decode_lines(file_lines(path), str(path)))
    # strict: an unclosed quote would otherwise swallow the rest of the file as one field
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next((row for row in reader if row), [])
        for row in reader:
            if len(row) == len(header):
                yield reader.line_num, dict(zip(header, row, strict=True))
            elif row:
                raise InputError(
                    f"line {reader.line_num} of {path} has {len(row)} fields where the header has "
                    f"{len(header)}; quote fields that hold {delimiter!r}, or correct the line."
                )
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} of {path} is not valid CSV ({error}); correct its quotes.") from error


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError(f"cannot read {path}, because its name is not UTF-8; rename it.") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = describe_error(error)
        raise InputError(
            f"cannot read {path} ({reason}); check that it is whole and of the format its name says."
        ) from error


def plain_rows(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a record batch, one at a time: long values that repeat are no copies in memory.

    Offsets are checked first: arrow trusts those of a damaged file and reads outside of it.
    """
    batch.validate(full=True)
    for values in zip(*batch.columns, strict=True):
        yield {name: value.as_py() for name, value in zip(batch.schema.names, values, strict=True)}


def parquet_rows(path: Path, keep: Sequence[str]) -> Iterator[Row]:
    # Behind the texts comes the column of groups.
    labels = keep[1] if len(keep) > 1 else None
    return batch_rows(path, keep, parquet_batches(path, keep, labels, 0, SLICE))


def ipc_rows(path: Path, keep: Sequence[str]) -> Iterator[Row]:
    return batch_rows(path, keep, ipc_batches(path, 0, SLICE))


def batch_rows(path: Path, keep: Sequence[str], batches: Iterable[tuple[int, Any]]) -> Iterator[Row]:
    with arrow_errors(path):
        for first, batch in batches:
            for start in range(0, batch.num_rows, SLICE):
                yield from enumerate(plain_rows(batch.slice(start, SLICE).select(keep)), first + start + 1)


def read_parquet_schema(path: Path) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.schema_arrow


def read_ipc_schema(path: Path) -> Any:
    with open_ipc_reader(path) as reader:
        return reader.schema


def arrow_columns(path: Path, read_schema: Callable[[Path], Any]) -> dict[str, bool]:
    with arrow_errors(path):
        return {field.name: str(field.type).split(",")[0] in ARROW_STRINGS for field in read_schema(path)}


def head_of(
    rows: Callable[[Path, Sequence[str]], Iterator[Row]], is_text: Callable[[Any], bool], path: Path
) -> dict[str, bool] | None:
    return head_columns(rows(path, ()), is_text)


def no_columns(path: Path) -> dict[str, bool]:
    return {}


# The table


@dataclass(frozen=True, slots=True)
class Format:
    """How one kind of file is read: its rows, the columns they have, and what a row's number counts."""

    kind: str
    rows: Callable[[Path, Sequence[str]], Iterator[Row]]
    columns: Callable[[Path], dict[str, bool] | None]
    place: str


def table_format(kind: str, rows: Any, is_text: Callable[[Any], bool], place: str) -> Format:
    """A format whose columns are learned from its first rows."""
    return Format(kind, rows, partial(head_of, rows, is_text), place)


TEXT = {unit: Format("text", partial(text_rows, unit=unit), no_columns, "line") for unit in UNITS}
TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst")
TABLES = {
    ".jsonl": (jsonl := table_format("jsonl", jsonl_rows, is_string, "line")),
    ".ndjson": jsonl,
    ".json": table_format("json", json_rows, is_string, "item"),
    ".csv": table_format("csv", partial(csv_rows, delimiter=","), is_no_number, "line"),
    ".tsv": table_format("tsv", partial(csv_rows, delimiter="\t"), is_no_number, "line"),
    ".parquet": Format("parquet", parquet_rows, partial(arrow_columns, read_schema=read_parquet_schema), "row"),
    ".arrow": (arrow := Format("arrow", ipc_rows, partial(arrow_columns, read_schema=read_ipc_schema), "row")),
    ".feather": arrow,
}


def suffix_of(path: Path) -> str:
    """The extension that says the format: the one before .gz where there is one.

    >>> suffix_of(Path("a.JSONL.gz")), suffix_of(Path("b.v2.csv"))
    ('.jsonl', '.csv')
    """
    packed = path.suffix.lower() == ".gz"
    return Path(path.stem).suffix.lower() if packed else path.suffix.lower()


def format_of(path: Path, unit: str) -> Format:
    """The format of a file by its extension; what is not a table is plain text."""
    return TABLES.get(suffix_of(path), TEXT[unit])


def read_files(paths: Sequence[Path], form: Format, column: str | None, group_by: str | None) -> Iterator[Cell]:
    """The texts of some files of one format, one file after the other."""
    for place, path in enumerate(paths):
        # The first file's columns were looked at when `column` was chosen.
        chosen = choose_column(str(path), form.columns(path), column, group_by) if place else column
        keep = [name for name in dict.fromkeys((chosen, group_by)) if name is not None]
        yield from text_cells(form.rows(path, keep), str(path), form.place, chosen, group_by)


# Folders


def folder_files(folder: Path) -> tuple[list[Path], int]:
    """The text files under a folder by relative path, and how many others (empty, binary) were left out."""
    found = sorted(walk(folder), key=lambda path: path.relative_to(folder).as_posix())
    paths = [path for path in found if _is_text(path)]
    if not paths:
        raise InputError(f"no text in {folder}: none of its {len(found)} files holds any; give another folder.")
    return paths, len(found) - len(paths)


def walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise InputError(f"cannot read the folder {error.filename}: {error.strerror}; check its rights.") from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _is_text(path: Path) -> bool:
    """Whether a file is to be read: by its extension, and where that is unknown by its first bytes."""
    try:
        if not path.stat().st_size:
            return False
        if suffix_of(path) in {*TABLES, *TEXT_SUFFIXES}:
            return True
        with path.open("rb") as stream:
            head = stream.read(SNIFFED)
        # Incremental, as the last character of the head may be cut.
        return b"\0" not in head and bool(codecs.getincrementaldecoder("utf-8")().decode(head))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path and its rights.") from error
    except UnicodeDecodeError:
        return False
