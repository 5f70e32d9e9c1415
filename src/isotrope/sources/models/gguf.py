"""The header of a GGUF file, walked through before anything that it announces is believed.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import IO

from isotrope.errors import InputError
from isotrope.storage.files import check_regular

#: Bytes of the types of values; 8 is text, 9 an array.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY = 8, 9

#: How the types of whole numbers are read, and blocks that a model may have whatever tensors there are.
_WHOLE, _FEW_BLOCKS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 10: "<Q", 11: "<q"}, 100

#: What the least entry takes: a key or name of no letters, and a type.
_LEAST = 12

_LONGEST_NAME, _DEEPEST, _MOST_AXES = 65_535, 4, 8


def check_gguf(path: Path) -> None:
    """Refuse a file whose header announces more than the file holds."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            _Header(file).walk()
    except (ValueError, struct.error) as error:
        raise InputError(f"{str(path)!r} is no whole GGUF file ({error}); download it again.") from error
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}); check its rights.") from error


class _Header:
    """Reads from a file, never beyond its end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size

    def walk(self) -> None:
        if self._file.read(4) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        (version,) = self._numbers("<I")
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, expected 2 or 3")
        tensors, pairs = self._numbers("<QQ")
        self._check_room(tensors + pairs, _LEAST)
        for _ in range(pairs):
            key = self._text(_LONGEST_NAME)
            (kind,) = self._numbers("<I")
            if key.endswith(b".block_count") and kind in _WHOLE:
                (blocks,) = self._numbers(_WHOLE[kind])
                self._check_blocks(blocks, tensors)
            else:
                self._skip_value(kind)
        for _ in range(tensors):
            self._tensor()

    def _check_blocks(self, blocks: int, tensors: int) -> None:
        """Refuse more blocks than there are tensors, each of which would be built before its weights are missed."""
        if blocks > max(tensors, _FEW_BLOCKS):
            raise ValueError(f"it announces {blocks} blocks and has {tensors} tensors")

    def _tensor(self) -> None:
        self._text(_LONGEST_NAME)
        (axes,) = self._numbers("<I")
        if axes > _MOST_AXES:
            raise ValueError(f"a tensor has {axes} axes")
        shape = self._numbers(f"<{axes}Q")
        _, offset = self._numbers("<IQ")
        # The tightest packings take more than a bit for a number.
        if offset > self._size or math.prod(shape) > 8 * self._size:
            raise ValueError(f"a tensor of shape {shape} begins at byte {offset} of {self._size}")

    def _numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self._file.read(struct.calcsize(form)))

    def _check_room(self, count: int, size: int) -> None:
        """Refuse so many things of at least that size where fewer bytes are left."""
        left = self._size - self._file.tell()
        if count * size > left:
            raise ValueError(f"its header announces {count} entries where {left} bytes are left")

    def _skip(self, count: int, size: int) -> None:
        self._check_room(count, size)
        self._file.seek(count * size, os.SEEK_CUR)

    def _text(self, longest: int) -> bytes:
        (length,) = self._numbers("<Q")
        if length > longest:
            raise ValueError(f"a name of {length} bytes")
        return self._file.read(length)

    def _skip_text(self) -> None:
        (length,) = self._numbers("<Q")
        self._skip(length, 1)

    def _skip_value(self, kind: int, depth: int = 0) -> None:
        if kind in _SIZES:
            self._skip(1, _SIZES[kind])
        elif kind == _TEXT:
            self._skip_text()
        elif kind == _ARRAY and depth < _DEEPEST:
            of, count = self._numbers("<IQ")
            if of in _SIZES:
                self._skip(count, _SIZES[of])
                return
            self._check_room(count, 8)
            for _ in range(count):
                self._skip_value(of, depth + 1)
        else:
            raise ValueError(f"a value of the unknown type {kind}")
