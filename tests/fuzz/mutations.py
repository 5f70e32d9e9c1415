"""Damaged files from whole ones: flipped bits, cuts, repeated and exchanged pieces, size fields set to huge values."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

#: Numbers that lengths, counts and offsets are replaced by.
_HUGE = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)

#: Pieces of text that parsers stumble over.
_WORDS = (
    b"9" * 30, b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"null", b"true", b"{}", b"[]", b'""', b"[" * 2000,
    b'{"a":' * 900, b"\\ud800", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"../../x", b"/etc/passwd",
    b"<script>", b"\t" * 9, b"__class__", b"(" * 200,
)  # fmt: skip


def _flip(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at : at + rng.randint(1, 16)] = rng.randbytes(rng.randint(1, 16))


def _cut(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 4, 8, 64, 1000))]


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.choice((1, 4, 8, 64))]
    data[at:at] = piece * rng.choice((1, 2, 50))


def _number(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A huge number where a length or an offset may stand."""
    form = rng.choice(("<B", "<H", "<I", "<Q", ">H", ">I", ">Q"))
    size = struct.calcsize(form)
    if len(data) >= size:
        # Headers stand at the beginning, those of parquet, arrow and zip at the end.
        span = min(len(data) - size, 200)
        at = rng.choice(
            (rng.randint(0, span), len(data) - size - rng.randint(0, span), rng.randint(0, len(data) - size))
        )
        struct.pack_into(form, data, at, rng.choice(_HUGE) & (256**size - 1))


def _digits(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A number that is written in digits, as in the header of an npy or a JSON file."""
    if found := list(re.finditer(rb"-?\d+", bytes(data))):
        one = rng.choice(found)
        data[one.start() : one.end()] = str(rng.choice((*_HUGE, -1, -(2**63), 10**25))).encode()


def _word(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at : at + rng.choice((0, 1, 8))] = rng.choice(_WORDS)


def _value(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A JSON value of another kind."""
    if found := list(re.finditer(rb'"[^"]*"|-?\d[\d.e+-]*|null|true|false', bytes(data))):
        one = rng.choice(found)
        data[one.start() : one.end()] = rng.choice((b"null", b"[]", b"{}", b"-1", b"1e999", b'"x"', b"[1]", b'{"a":1}'))


def _splice(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    at = rng.randrange(len(other) + 1)
    data[rng.randrange(len(data) + 1) :] = other[at:]


def _random(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    keep = rng.choice((0, 0, 4, 8, 12))
    data[keep:] = rng.randbytes(rng.choice((0, 1, 10, 100, 3000)))


_KINDS: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _flip, _overwrite, _cut, _remove, _repeat, _number, _number, _digits, _digits, _word, _value, _splice,
    _random,
)  # fmt: skip


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, damaged once or a few times.

    >>> mutated(random.Random(1), [b"whole"]) == mutated(random.Random(1), [b"whole"]) != b"whole"
    True
    """
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_KINDS)(rng, data, seeds)
    return bytes(data[:100_000])
