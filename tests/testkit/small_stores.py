"""Small stores of each kind that hold given rows, and what they hold under another name afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Place:
    """An address, the options that go with it, and one for repaired vectors, to be read back with `back`."""

    address: str
    target: str
    back: Callable[[], Rows]
    column: tuple[str, ...] = ()


def lancedb(folder: Path, rows: Rows) -> Place:
    import pyarrow as pa

    database = pytest.importorskip("lancedb").connect(str(folder))
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    half = len(rows) // 2
    table = pa.table({"id": pa.array(range(len(rows))), "language": languages(len(rows)), "vector": values})
    database.create_table("texts", table.slice(0, half)).add(table.slice(half))

    def back() -> Rows:
        found = database.open_table("repaired").to_arrow()
        assert found.column("id").to_pylist() == list(range(len(rows)))
        assert found.column("language").to_pylist() == languages(len(rows))
        return np.stack(found.column("vector").to_pylist()).astype(np.float32)

    return Place(f"lancedb:{folder}#texts", f"lancedb:{folder}#repaired", back)


def qdrant(folder: Path, rows: Rows, distance: str = "Dot", name: str = "") -> Place:
    client = pytest.importorskip("qdrant_client")
    models = client.models
    params = models.VectorParams(size=rows.shape[1], distance=distance)
    own = client.QdrantClient(path=str(folder))
    own.create_collection("texts", vectors_config={name: params} if name else params)
    points = [
        models.PointStruct(id=i, vector={name: row} if name else row, payload={"language": {"code": code}})
        for i, (row, code) in enumerate(zip(rows.tolist(), languages(len(rows)), strict=True))
    ]
    own._client.collections["texts"].storage.storage.execute("PRAGMA synchronous=OFF")  # else a wait for each point
    own.upsert("texts", points[::-1])
    own.close()

    def back() -> Rows:
        own = client.QdrantClient(path=str(folder))
        points, _ = own.scroll("repaired", limit=len(rows) + 1, with_vectors=True)
        own.close()
        assert [p.id for p in points] == list(range(len(rows)))
        assert [p.payload["language"]["code"] for p in points] == languages(len(rows))
        return np.array([p.vector[name] if name else p.vector for p in points], np.float32)

    return Place(f"qdrant:{folder}#texts", f"qdrant:{folder}#repaired", back)


def faiss(folder: Path, rows: Rows, kind: str = "IDMap,Flat") -> Place:
    library: Any = pytest.importorskip("faiss")
    index = library.index_factory(rows.shape[1], kind, library.METRIC_INNER_PRODUCT)
    index.train(rows)
    ids = np.arange(len(rows), dtype=np.int64)[::-1] * 3 + 7
    index.add_with_ids(rows, ids)
    folder.mkdir(exist_ok=True)
    library.write_index(index, str(folder / "texts.faiss"))

    def back() -> Rows:
        found = library.read_index(str(folder / "repaired.faiss"))
        assert found.metric_type == library.METRIC_INNER_PRODUCT
        return np.asarray(found.reconstruct_batch(ids))

    return Place(str(folder / "texts.faiss"), str(folder / "repaired.faiss"), back)


def pgvector(folder: Path, rows: Rows, kind: str = "vector", key: bool = True) -> Place:
    """In the server whose socket is in a folder; a table without a key has its rows as they were put in."""
    psycopg = pytest.importorskip("psycopg")
    register = pytest.importorskip("pgvector.psycopg").register_vector

    def connect() -> Any:
        return psycopg.connect(host=str(folder), user="postgres", dbname="postgres")

    with connect() as server:
        server.execute("CREATE EXTENSION IF NOT EXISTS vector")
        server.execute("DROP TABLE IF EXISTS texts")
        server.execute(
            f"CREATE TABLE texts (id int {'PRIMARY KEY' if key else ''}, language text, "
            f"embedding {kind}({rows.shape[1]}), other vector(2))"
        )
        numbers = range(len(rows)) if not key else range(len(rows))[::-1]
        with server.cursor().copy("COPY texts (id, language, embedding) FROM STDIN") as copy:
            for i in numbers:
                copy.write_row((i, languages(len(rows))[i], "[" + ",".join(map(repr, rows[i].tolist())) + "]"))

    def back() -> Rows:
        with connect() as server:
            register(server)  # pgvector's own way to read
            found = server.execute("SELECT embedding_repaired FROM texts ORDER BY id").fetchall()
        return np.stack([_array(value) for (value,) in found])

    address = f"postgresql://postgres@/postgres?host={folder}#texts"
    return Place(address, address, back, ("--column", "embedding"))


def _array(value: Any) -> Rows:
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value, np.float32)


def languages(rows: int) -> list[str]:
    return ["en" if i % 3 else "de" for i in range(rows)]
