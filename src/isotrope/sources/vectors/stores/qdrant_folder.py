"""A folder of Qdrant's local mode, whose points the client keeps pickled: read as data, never as code."""

from __future__ import annotations

import io
import pickle  # nosec B403  # only to refuse what is more than a point
import pickletools  # nosec B403  # it reads pickles without loading them
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.vectors.stores.store import import_package

#: The only things that a stored point is made of, besides plain values.
_KNOWN = {("qdrant_client.http.models.models", name) for name in ("PointStruct", "SparseVector")}

#: A run of the instructions that most of a pickled point is made of: floats, small integers, marks, lists and the like.
#: They take no memory beyond that of their own values. A run is bounded because `re` remembers its steps; vectors are
#: passed over eight floats at a step.
_PLAIN = re.compile(
    rb"(?:" + rb"G.{8}" * 8 + rb"|G.{8}|K.|M..|J.{4}|h.|j.{4}|[\x85-\x89\x93\x94N(){}\[\]aelstudb]){0,2000}", re.DOTALL
)

_OPERATIONS = {ord(operation.code): operation for operation in pickletools.opcodes}

#: Instructions that keep a value under a number, for which the reader makes room up to that number.
_KEEPING = ("PUT", "BINPUT", "LONG_BINPUT")


@contextmanager
def allow_only_points(folder: str) -> Iterator[None]:
    """Let the client open a folder with a reader that knows points and plain values alone.

    Loading a pickle can run any code. What the client itself loads is what is checked: a look beforehand could be shown
    other points than the client is.
    """
    persistence = import_package("qdrant_client.local.persistence", "reading Qdrant")
    original = persistence.pickle
    persistence.pickle = SimpleNamespace(loads=lambda p: load_point(folder, p), dumps=original.dumps)
    try:
        yield
    finally:
        persistence.pickle = original


def load_point(folder: str, point: bytes) -> Any:
    """Return a pickled point, made of points and plain values alone, which claims no more than it holds."""
    _check_claims(folder, point)
    return _PointReader(folder, point).load()


def _check_claims(folder: str, point: bytes) -> None:
    """Refuse a pickle with a length or a number that its own size does not explain, for which memory would be taken."""
    stream, at = io.BytesIO(point), 0
    while at < len(point):
        if (plain := _PLAIN.match(point, at)) is not None and plain.end() > at:
            at = plain.end()
            continue
        operation = _OPERATIONS.get(point[at])
        if operation is None or operation.name == "STOP":
            return
        stream.seek(at + 1)
        argument = 0 if operation.arg is None else operation.arg.reader(stream)  # refuses what is cut short
        if operation.name in _KEEPING and argument > len(point):
            raise InputError(
                f"{folder} holds a point of {len(point):,} bytes that asks for room for {argument:,} values; "
                "it is damaged or made to take memory: use a folder that you trust."
            )
        at = stream.tell()


class _PointReader(pickle.Unpickler):
    def __init__(self, folder: str, point: bytes) -> None:
        super().__init__(io.BytesIO(point))
        self.folder = folder

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise InputError(
                f"{self.folder} holds a pickled {module}.{name} where points are expected, which is refused because "
                "loading it could run code; use a folder that you trust, with plain values as payload."
            )
        return super().find_class(module, name)
