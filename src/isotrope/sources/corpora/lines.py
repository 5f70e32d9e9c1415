"""Lines and paragraphs of plain text, from files and from pipes."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import os
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from isotrope.errors import InputError
from isotrope.sources.corpora.columns import Cell, Row

#: Bytes of a line, or of a paragraph, that may be one text. A packed file of a few kilobytes can hold a longer one.
LONGEST = 1 << 27

#: Lines of the language reference that only underline a title.
_UNDERLINE = re.compile(r"\s*([*=^~-])\1{2,}\s*")

#: Bytes of a stream that are read at a time, and seconds that a pipe may be without anybody who writes to it.
_BLOCK, _PATIENCE = 1 << 20, 5.0


def file_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, unpacked where its name ends in .gz."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as stream:
            yield from short_lines(stream.readline, str(path))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a whole gzip file ({error}); pack it again or unpack it.") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path and its rights.") from error


def short_lines(read_line: Callable[[int], bytes], name: str) -> Iterator[bytes]:
    """The lines of a stream; one that is too long to be a text is refused before it fills the memory."""
    number = 0
    while line := read_line(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise InputError(
                f"line {number} of {name} is longer than {LONGEST >> 20:,} MiB, which is no text; "
                "check the file, or put each text into a line of its own."
            )
        yield line


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    r"""Numbered lines of UTF-8 text with their line ends; a leading byte order mark is dropped.

    >>> list(decode_lines([b"\xef\xbb\xbfone\n", b"two"], "a.txt"))
    [(1, 'one\n'), (2, 'two')]
    """
    offset = 0
    for number, line in enumerate(lines, 1):
        _check_text(line, name, f"line {number}")
        start = len(codecs.BOM_UTF8) if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
        try:
            text = line[start:].decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name} is not valid UTF-8 at byte {offset + start + error.start} (line {number}); "
                "convert it to UTF-8, for example with iconv."
            ) from error
        yield number, text
        offset += len(line)


def _check_text(data: bytes, name: str, where: str) -> None:
    if b"\0" in data:
        raise InputError(
            f"{name} is binary or UTF-16, not UTF-8 text (NUL byte in {where}); "
            "give a text file, or convert it to UTF-8."
        )


def line_texts(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    r"""Each line that is not blank, as it stands.

    >>> list(line_texts([(1, " one\r\n"), (2, " \n"), (3, "two")]))
    [(1, ' one'), (3, 'two')]
    """
    return ((number, line.rstrip("\r\n")) for number, line in lines if line.strip())


def paragraph_texts(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    r"""Each block of lines between blank lines, white space folded, with the number of its first line.

    >>> list(paragraph_texts([(1, "one\n"), (2, "  two\n"), (3, "\n"), (4, "three")]))
    [(1, 'one two'), (4, 'three')]
    """
    first, length, words = 0, 0, list[str]()
    for number, line in lines:
        if new := line.split():
            first = first if words else number
            words += new
            length += len(line)
            if length > LONGEST:
                raise InputError(
                    f"the paragraph that begins in line {first} is longer than {LONGEST >> 20:,} MiB, which is no "
                    "text; put blank lines between paragraphs, or read the file by lines."
                )
        elif words:
            yield first, " ".join(words)
            words, length = [], 0
    if words:
        yield first, " ".join(words)


def stream_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a stream, some at a time."""
    while block := stream.read(_BLOCK):
        yield block


def pipe_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a pipe, some at a time; one that nothing is written to is refused after a few seconds."""
    try:
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which does not wait for a writer
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path and its rights.") from error
    try:
        yield _first_block(path, pipe)
        os.set_blocking(pipe, True)
        while block := os.read(pipe, _BLOCK):
            yield block
    finally:
        os.close(pipe)


def _first_block(path: Path, pipe: int) -> bytes:
    """What is in a pipe by now, which may be nothing yet where somebody has opened it to write."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            block = os.read(pipe, _BLOCK)
        except BlockingIOError:  # there is a writer
            return b""
        if block:
            return block
        if time.monotonic() > deadline:
            raise InputError(
                f"{str(path)!r} is a pipe to which nothing was written in {_PATIENCE:g} seconds; "
                "start the program that writes to it first, or give a file."
            )
        time.sleep(0.02)


def spool_blocks(blocks: Iterable[bytes], name: str) -> tuple[IO[bytes], dict[str, Any]]:
    """A copy of a stream that can be read again, and its size and hash; what is no text is refused at once."""
    # A pipe gives its bytes once: they are kept in memory, above 64 MiB in a temporary file on disk.
    spool = tempfile.SpooledTemporaryFile(max_size=2**26)  # noqa: SIM115 - lives as long as the corpus
    digest = hashlib.sha256()
    for block in blocks:
        _check_text(block, name, f"the {len(block):,} bytes from byte {spool.tell():,} on")
        spool.write(block)
        digest.update(block)
    return spool, {"bytes": spool.tell(), "sha256": digest.hexdigest()}


def read_spooled_lines(spool: IO[bytes], name: str) -> Iterator[bytes]:
    place = 0

    def read_line(most: int) -> bytes:
        nonlocal place
        spool.seek(place)  # each time: another pass may be under way on the same file
        line = spool.readline(most)
        place = spool.tell()
        return line

    return short_lines(read_line, name)


def manual_cells(group_by: str | None) -> Iterator[Cell]:
    """The language reference that every Python carries, in paragraphs of three words or more."""
    from pydoc_data.topics import topics

    for topic in sorted(topics):
        lines = (line for line in topics[topic].splitlines() if not _UNDERLINE.fullmatch(line))
        for _, text in paragraph_texts(enumerate(lines, 1)):
            if len(text.split()) >= 3:
                yield text, topic if group_by else None


UNITS: dict[str, Callable[[Iterable[tuple[int, str]]], Iterator[Row]]] = {
    "line": line_texts,
    "paragraph": paragraph_texts,
}
