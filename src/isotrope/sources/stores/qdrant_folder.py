"""A folder of Qdrant's local mode, whose points the client keeps pickled: read as data, never as code."""

from __future__ import annotations

import io
import pickle  # nosec B403  # only to refuse what is more than a point
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.stores.store import package

#: The only things that a stored point is made of, besides plain values.
_KNOWN = {("qdrant_client.http.models.models", name) for name in ("PointStruct", "SparseVector")}


@contextmanager
def points_alone(folder: str) -> Iterator[None]:
    """Let the client open a folder with a reader that knows points and plain values alone.

    Loading a pickle can run any code. What the client itself loads is what is checked: a look beforehand could be shown
    other points than the client is.
    """
    persistence = package("qdrant_client.local.persistence", "reading Qdrant")
    original = persistence.pickle
    persistence.pickle = SimpleNamespace(loads=lambda p: _PointReader(folder, p).load(), dumps=original.dumps)
    try:
        yield
    finally:
        persistence.pickle = original


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
