"""A folder of Qdrant's local mode, looked through before Qdrant's client loads it."""

from __future__ import annotations

import io
import pickle  # nosec B403: only to refuse what is more than a point
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from isotrope.errors import InputError

#: The only things that a stored point is made of, besides plain values.
_KNOWN = {("qdrant_client.http.models.models", name) for name in ("PointStruct", "SparseVector")}


def refuse_code(folder: str) -> None:
    """Refuse a folder whose points are more than data.

    The client keeps each point pickled, and loading a pickle can run any code; so each is read first by a reader that
    knows points and plain values alone. Folders that the client wrote pass.
    """
    for path in sorted(Path(folder).glob("collection/*/storage.sqlite")):
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            for (point,) in database.execute("SELECT point FROM points"):
                _PointReader(path, point).load()


class _PointReader(pickle.Unpickler):
    def __init__(self, path: Path, point: bytes) -> None:
        super().__init__(io.BytesIO(point))
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise InputError(
                f"{self.path} holds a pickled {module}.{name} where points are expected, which is refused because "
                "loading it could run code; use a folder that you trust, with plain values as payload."
            )
        return super().find_class(module, name)
