"""Qdrant, a server or a folder of its local mode: the vectors of a collection by id, and a new one of repaired ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.sources.batch import Groups
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.qdrant_folder import allow_only_points
from isotrope.sources.vectors.stores.store import (
    Records,
    Store,
    check_not_empty,
    check_unchanged,
    choose_name,
    import_package,
    name_store_in_errors,
)

#: Seconds that a request may take, and points and numbers that one carries at most: numbers of a few megabytes.
_PATIENCE, _PAGE, _NUMBERS = 20, 1024, 1 << 18

_NORMALISED = (
    "The vectors have length 1: Qdrant normalises them for the distance Cosine, and their own lengths are lost."
)

#: What the ids of points are called, beside the keys of their payloads.
_ID = "id"

#: Clients of folders that are open, with how many use each: a folder can be opened once only.
_OPEN: dict[str, tuple[Any, int]] = {}


@dataclass(frozen=True)
class _QdrantPoints:
    """The points of a collection that have the vectors of one name ("" where vectors have none), ordered by id."""

    address: Address
    collection: str
    vector: str
    rows: int
    width: int

    def pieces(self, group_by: str | None, start: int, size: int) -> Iterator[Piece]:
        """Vectors from point number `start` on, and their groups."""
        payload = False if group_by is None else [group_by]
        for points in self.pages(payload, start, size):
            labels = None if group_by is None else Groups.of(_label(point.payload, group_by) for point in points)
            yield self.matrix(points), labels

    def pages(
        self, payload: bool | list[str], start: int, size: int, *, with_vectors: bool = True
    ) -> Iterator[list[Any]]:
        """Points from number `start` on, at most `size` at a time; those before are passed over without vectors."""
        wanted = ([self.vector] if self.vector else True) if with_vectors else False
        with name_store_in_errors(self.address), _client(self.address) as client:
            place, row = None, 0
            while row < start:
                points, place = client.scroll(
                    self.collection, _having(self.vector), min(start - row, 8 * _PAGE), offset=place, with_payload=False
                )
                row += len(points)
                if place is None:
                    break
            while row == 0 or place is not None:
                points, place = client.scroll(
                    self.collection, _having(self.vector), min(size, _page(self.width)), offset=place,
                    with_payload=payload, with_vectors=wanted,
                )  # fmt: skip
                row += len(points)
                if points:
                    yield points
                elif row == 0:
                    break
            check_unchanged(self.address, self.rows, row)

    def matrix(self, points: list[Any]) -> NDArray[np.float32]:
        """The vectors of points, (m, d)."""
        return np.array([point.vector[self.vector] if self.vector else point.vector for point in points], np.float32)


@dataclass(frozen=True)
class QdrantVectors(Store):
    """The vectors of a collection under one name, in the order of the points' ids."""

    points: _QdrantPoints
    distance: str

    @property
    def details(self) -> dict[str, Any]:
        named = {"collection": self.points.collection, "vector": self.points.vector or None, "distance": self.distance}
        return named | ({"note": _NORMALISED} if _is_normalised(self.address, self.distance) else {})

    @property
    def column_names(self) -> list[str]:
        """The id, and the keys of the first points' payloads."""
        first = next(self.points.pages(True, 0, _PAGE, with_vectors=False), [])
        return list(dict.fromkeys([_ID, *(key for point in first for key in _list_keys(point.payload))]))

    def read_column(self, name: str, size: int) -> Iterator[list[Any]]:
        for points in self.points.pages(name != _ID and [name], 0, size, with_vectors=False):
            yield [point.id if name == _ID else _find_value(point.payload, name) for point in points]

    def records(self, size: int) -> Records:
        """Points with their ids and payloads."""
        for points in self.points.pages(True, 0, size):
            yield points, self.points.matrix(points)

    def target(self, address: Address, column: str | None, width: int) -> QdrantTarget:
        """A new collection with the ids, payloads and the distance of this one; column: the name of its vectors."""
        with name_store_in_errors(address, "opened"), _client(address, new=True) as client:
            if client.collection_exists(address.named):
                raise StoreError(f"{address} is there already, and is never written over; name a new collection.")
        return QdrantTarget(address, self.points.vector if column is None else column, self.distance, width)


@dataclass(frozen=True)
class QdrantTarget:
    """A collection that is not there yet."""

    address: Address
    vector: str
    distance: str
    width: int

    @property
    def words(self) -> str:
        short = "; for the distance Cosine Qdrant keeps them at length 1" * _is_normalised(self.address, self.distance)
        return f"the new collection {self.address}, with ids and payloads{short}"

    def write(self, records: Records) -> None:
        """Fill a new collection; it is removed again where that fails."""
        models = import_package("qdrant_client.models", "writing to Qdrant")
        params = models.VectorParams(size=self.width, distance=models.Distance(self.distance))
        name = self.address.named
        with name_store_in_errors(self.address, "written"), _client(self.address, new=True) as client:
            with allow_only_points(self.address.place):  # a folder may hold points of that name which it does not list
                client.create_collection(name, vectors_config={self.vector: params} if self.vector else params)
            try:
                for points, vectors in records:
                    rows = [{self.vector: row} if self.vector else row for row in vectors.tolist()]
                    new = [
                        models.PointStruct(id=old.id, vector=row, payload=old.payload)
                        for old, row in zip(points, rows, strict=True)
                    ]
                    for low in range(0, len(new), _page(self.width)):
                        _put(client, name, new[low : low + _page(self.width)])
            except BaseException:
                client.delete_collection(name)
                raise


def _page(width: int) -> int:
    """How many points one request carries."""
    return max(1, min(_PAGE, _NUMBERS // width))


def _put(client: Any, collection: str, points: list[Any]) -> None:
    """Write points; where a server takes no request as large as their payloads make it, in halves."""
    refused = import_package("qdrant_client.http.exceptions", "writing to Qdrant").UnexpectedResponse
    try:
        client.upsert(collection, points, wait=True)
    except refused as error:
        # Qdrant itself answers 400, what stands in front of it 413.
        if len(points) == 1 or not (error.status_code == 413 or b"larger than allowed" in error.content):
            raise
        for half in (points[: len(points) // 2], points[len(points) // 2 :]):
            _put(client, collection, half)


def _is_normalised(address: Address, distance: str) -> bool:
    """Whether vectors are kept at length 1; a folder keeps those for the distance Cosine as they were given."""
    return address.is_server and distance == "Cosine"


def open_qdrant(address: Address, column: str | None, group_by: str | None) -> QdrantVectors:
    """The vectors of a collection; column: their name, where the collection has named ones."""
    with _client(address) as client:
        collection = choose_name(address, [c.name for c in client.get_collections().collections], "collection")
        vectors = client.get_collection(collection).config.params.vectors
        vector, params = _choose(address, vectors, column)
        rows = client.count(collection, count_filter=_having(vector), exact=True).count
        left_out = client.count(collection, exact=True).count - rows
    name = f"{address} [{vector}]" if vector else str(address)
    if params.multivector_config is not None:
        raise InputError(f"{name} holds several vectors per point, expected one; pool them first.")
    check_not_empty(name, rows, left_out)
    dtype = params.datatype.value if params.datatype is not None else "float32"
    check_matrix(name, (rows, params.size), dtype)
    points = _QdrantPoints(address, collection, vector, rows, params.size)
    block = Block(name, rows, params.size, dtype, partial(points.pieces, group_by))
    return QdrantVectors(address, block, left_out, points, params.distance.value)


def _choose(address: Address, vectors: Any, column: str | None) -> tuple[str, Any]:
    """The name and the parameters of the vectors that are asked for, or of the only ones."""
    if not vectors:
        raise InputError(f"{address} has sparse vectors only, expected dense ones; name another collection.")
    if not isinstance(vectors, dict):
        if column:
            raise InputError(f"{address} has vectors without names, so --column {column!r} has no use; leave it out.")
        return "", vectors
    if column is None and len(vectors) == 1:
        (column,) = vectors
    if column is None or column not in vectors:
        asked = "" if column is None else f" but not {column!r}"
        raise InputError(f"{address} has the vectors {', '.join(vectors)}{asked}; name one with --column.")
    return column, vectors[column]


def _having(vector: str) -> Any:
    """The filter for points that have the vector."""
    models = import_package("qdrant_client.models", "reading Qdrant")
    return models.Filter(must=[models.HasVectorCondition(has_vector=vector)])


def _list_keys(payload: Any) -> list[str]:
    """The keys of a payload, such as "author.name" where values are payloads themselves."""
    found: list[str] = []
    for key, value in (payload or {}).items():
        found += [f"{key}.{below}" for below in _list_keys(value)] if isinstance(value, dict) else [key]
    return found


def _find_value(payload: Any, key: str) -> Any:
    """The value of a key such as "author.name", None where there is none."""
    value = payload
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _label(payload: Any, key: str) -> str:
    """The value of a key as text, "null" where there is none."""
    value = _find_value(payload, key)
    if isinstance(value, (list, dict)):
        raise InputError(f"the payload {key!r} holds a {type(value).__name__}, expected one value; name another key.")
    return "null" if value is None else str(value)


@contextmanager
def _client(address: Address, new: bool = False) -> Iterator[Any]:
    """A client of the server or of the folder, closed when nobody uses it any more.

    new: the folder may be made, and is taken away again where nothing was put into it.
    """
    library = import_package("qdrant_client", "reading Qdrant")
    if address.is_server:
        if "@" in address.place:
            raise InputError(f"{address} holds a user or key, which Qdrant takes from QDRANT_API_KEY; set it there.")
        key = os.environ.get("QDRANT_API_KEY")
        client = library.QdrantClient(url=address.place, api_key=key, timeout=_PATIENCE, check_compatibility=False)
        try:
            yield client
        finally:
            client.close()
        return
    folder = os.path.realpath(address.place)
    made = new and not os.path.exists(folder)
    if folder not in _OPEN:
        if not made and not (Path(folder) / "meta.json").is_file():  # it would be made
            raise InputError(f"{address.place!r} is no folder of Qdrant's local mode; check the path.")
        with allow_only_points(folder):
            _OPEN[folder] = library.QdrantClient(path=folder), 0
    client, users = _OPEN[folder]
    _OPEN[folder] = client, users + 1
    try:
        yield client
    finally:
        client, users = _OPEN.pop(folder)
        if users > 1:
            _OPEN[folder] = client, users - 1
        else:
            made = made and not client.get_collections().collections
            client.close()
            if made:
                shutil.rmtree(folder, ignore_errors=True)
