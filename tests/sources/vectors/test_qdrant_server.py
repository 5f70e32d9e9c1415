"""Qdrant by HTTP: paging, the key from the environment, vectors at length 1, and a collection that is removed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.repairs import Whitening, apply_to_store
from isotrope.sources.vectors.source import ArraySource
from isotrope.sources.vectors.stores.address import parse

pytest.importorskip("qdrant_client")
pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")

ROWS = np.random.default_rng(0).normal(1, 1, (2500, 8)).astype(np.float32)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    from qdrant_client import models

    from testkit.qdrant_server import KEY, server

    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    with server() as (url, memory):
        memory.create_collection("texts", models.VectorParams(size=8, distance=models.Distance.COSINE))
        points = [models.PointStruct(id=i, vector=row, payload={"n": i}) for i, row in enumerate(ROWS.tolist())]
        memory.upsert("texts", points)
        yield f"qdrant+{url}#", memory


def test_a_collection_is_read_and_written_by_http(place: tuple[str, Any]) -> None:
    url, memory = place
    source = ArraySource(url + "texts")
    batches = list(source.batches())
    rows = np.concatenate([b.layers[0] for b in batches])
    np.testing.assert_allclose(rows, ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
    assert "length 1" in source.describe()["files"][0]["note"]
    later = ArraySource(url + "texts", batch_rows=1000).batches(2)
    np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in later]), rows[2000:])
    repair, store, address = Whitening(n_components=3).fit(rows), source.store, parse(url + "new")
    assert store is not None
    assert address is not None
    target = store.target(address, None, 3)
    assert "length 1" in target.words
    assert apply_to_store(repair, store, target) == 2500
    points, _ = memory.scroll("new", limit=2500, with_vectors=True)
    expected = repair.transform(rows)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose([p.vector for p in points], expected, rtol=0, atol=1e-6)
    assert [p.payload for p in points] == [{"n": i} for i in range(2500)]


def test_a_collection_that_could_not_be_filled_is_removed(place: tuple[str, Any]) -> None:
    url, memory = place
    store, address = ArraySource(url + "texts").store, parse(url + "new")
    assert store is not None
    assert address is not None

    def halfway() -> Iterator[Any]:
        for record in store.records(500):
            yield record
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.target(address, None, 8).write(halfway())
    assert not memory.collection_exists("new")


def test_wide_vectors_and_long_payloads_go_in_smaller_requests(place: tuple[str, Any]) -> None:
    from qdrant_client import models

    url, memory = place
    rows = np.random.default_rng(1).normal(size=(300, 2000)).astype(np.float32)
    memory.create_collection("wide", models.VectorParams(size=2000, distance=models.Distance.DOT))
    points = [
        models.PointStruct(id=i, vector=row, payload={"text": "x" * 5000 * (i % 5)})
        for i, row in enumerate(rows.tolist())
    ]
    memory.upsert("wide", points)
    store, address = ArraySource(url + "wide").store, parse(url + "new")
    assert store is not None
    assert address is not None
    records = list(store.records(300))
    assert max(len(found) for found, _ in records) == (1 << 18) // 2000
    store.target(address, None, 2000).write(records)
    found, _ = memory.scroll("new", limit=300, with_vectors=True)
    np.testing.assert_array_equal(np.array([p.vector for p in found], np.float32), rows)
    assert [p.payload for p in found] == [p.payload for p in points]


def test_a_server_that_wants_another_key(place: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "another-k3y")
    with pytest.raises(InputError, match="401") as refused:
        ArraySource(place[0] + "texts")
    assert "k3y" not in str(refused.value)
