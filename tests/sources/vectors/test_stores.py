"""Every store gives the rows it holds, in one order, as ArraySource gives those of a file."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError, MissingExtra, StoreError
from isotrope.repairs import Whitening, apply_to_store
from isotrope.sources.vectors.name_columns import open_vector_names
from isotrope.sources.vectors.source import ArraySource
from isotrope.sources.vectors.stores.address import parse
from testkit import small_stores
from testkit.small_stores import Place, Rows

Build = Callable[[Rows], Place]


@pytest.fixture(params=["lancedb", "qdrant", "faiss", "pgvector"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """rows -> a store of one kind that holds them."""
    folder = request.getfixturevalue("postgres") if request.param == "pgvector" else tmp_path / "store"
    return lambda rows: getattr(small_stores, request.param)(folder, rows)


def source_of(place: Place, **options: object) -> ArraySource:
    return ArraySource(place.address, column=place.column[1] if place.column else None, **options)  # type: ignore[arg-type]


def numbers(rows: int, width: int) -> Rows:
    return np.random.default_rng(width).normal(1, 1, (rows, width)).astype(np.float32)


@pytest.mark.parametrize(("count", "width"), [(400, 8), (100, 384)])
def test_rows_come_as_they_were_put_in(build: Build, count: int, width: int) -> None:
    rows = numbers(count, width)
    source = source_of(build(rows), batch_rows=64)
    assert (source.total, source.width, source.dtype) == (count, width, np.float32)
    batches = list(source.batches())
    assert [len(b.rows) for b in batches[:-1]] == [64] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in batches]), rows)
    np.testing.assert_array_equal(np.concatenate([b.rows.sequence for b in batches]), np.arange(count))
    later = np.concatenate([b.layers[0] for b in source.batches(1)])
    np.testing.assert_array_equal(later, rows[64:])


@pytest.mark.parametrize(
    ("build", "key"),
    [("lancedb", "language"), ("qdrant", "language.code"), ("pgvector", "language")],
    indirect=["build"],
)
def test_groups(build: Build, key: str) -> None:
    source = source_of(build(numbers(50, 4)), group_by=key, batch_rows=20)
    found = [label for b in source.batches() if b.rows.group is not None for label in b.rows.group.tolist()]
    assert found == small_stores.languages(50)


@pytest.mark.parametrize(
    ("build", "text"),
    [("lancedb", "language"), ("qdrant", "language.code"), ("pgvector", "language"), ("faiss", None)],
    indirect=["build"],
)
def test_rows_are_named_by_their_ids(build: Build, text: str | None) -> None:
    place = build(numbers(50, 4))
    source = source_of(place)
    names = open_vector_names(source, "id", text)
    assert names is not None
    names.check()
    # The index of faiss has ids of its own, the others number their rows.
    expected = {row: str(row if text else 3 * (49 - row) + 7) for row in (2, 48)}
    found = names.find(np.array([48, 2]))
    assert {row: name.id for row, name in found.items()} == expected
    languages = small_stores.languages(50)
    assert {row: name.text for row, name in found.items()} == {row: text and languages[row] for row in (2, 48)}
    with pytest.raises(InputError, match=r"has no column 'ids' \(did you mean 'id'\?\)"):
        open_vector_names(source, "ids", None)


def test_repaired_vectors_go_back(build: Build) -> None:
    rows = numbers(120, 8)
    place = build(rows)
    repair = Whitening(n_components=5).fit(rows)
    store = source_of(place).store
    assert store is not None
    address = parse(place.target)
    assert address is not None
    told: list[tuple[int, int | None]] = []
    target = store.target(address, None, 5)
    assert apply_to_store(repair, store, target, lambda *now: told.append(now)) == 120
    np.testing.assert_allclose(place.back(), repair.transform(rows), rtol=0, atol=1e-6)  # products of other shapes
    assert told[-1] == (120, 120)
    # What was there is as it was, and what is there now is not written over.
    np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in source_of(place).batches()]), rows)
    with pytest.raises(StoreError, match="already"):
        store.target(address, None, 5)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_a_write_that_is_stopped_leaves_nothing(build: Build, stop: type[BaseException]) -> None:
    rows = numbers(120, 8)
    place = build(rows)
    store, address = source_of(place).store, parse(place.target)
    assert store is not None
    assert address is not None

    def halfway():  # type: ignore[no-untyped-def]
        for i, record in enumerate(store.records(30)):
            if i == 3:
                raise stop("stopped")
            yield record

    with pytest.raises((stop, InputError, StoreError)):
        store.target(address, None, 8).write(halfway())
    store.target(address, None, 8)  # is free still
    np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in source_of(place).batches()]), rows)


@pytest.mark.parametrize("build", ["lancedb", "qdrant", "pgvector"], indirect=True)
def test_what_is_not_there_is_named(build: Build) -> None:
    place = build(numbers(20, 4))
    beginning, _, _ = place.address.rpartition("#")
    with pytest.raises(InputError, match="texts"):
        ArraySource(f"{beginning}#text")
    with pytest.raises(InputError, match="nosuch"):
        ArraySource(place.address, column="nosuch")


@pytest.mark.parametrize(
    "address",
    ["lancedb:{}/none#t", "qdrant:{}/none#t", "faiss:{}/none", "{}/none.faiss", "lancedb:{}#t", "qdrant:{}#t",
     "qdrant+http://127.0.0.1:9#t", "postgresql://me:hunter2@127.0.0.1:9/db#t", "postgresql:///db?host={}#t",
     "postgresql://me:hunter2@127.0.0.1:nine/db#t", "postgresql://me:hun/ter2@127.0.0.1:9/db#t",
     "qdrant+http://key:hunter2@127.0.0.1:9#t", "lancedb:", "postgresql://127.0.0.1:9/db"],
)  # fmt: skip
def test_what_cannot_be_reached_is_one_sentence_without_secrets(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        ArraySource(address.format(tmp_path))
    said = str(refused.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert "hunter2" not in said
    assert "ter2" not in said
    assert list(tmp_path.iterdir()) == []  # the libraries would make a new store there


@pytest.mark.parametrize(
    ("package", "address"),
    [
        ("lancedb", "lancedb:{}#t"),
        ("qdrant_client", "qdrant:{}#t"),
        ("faiss", "faiss:{}/a"),
        ("psycopg", "postgresql://h/d#t"),
    ],
)
def test_a_missing_package_names_its_command(
    package: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("something")
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*pip install 'isotrope\[stores\]'"):
        ArraySource(address.format(tmp_path))


@pytest.mark.parametrize("address", ["postgresql://127.0.0.1:9/db#t", "qdrant+http://127.0.0.1:9#t"])
def test_stores_need_no_fsspec(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="cannot be read"):
        ArraySource(address)


def test_a_store_that_was_skipped_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could be opened and not be read through."""
    place = small_stores.lancedb(tmp_path / "store", numbers(20, 4))
    np.save(tmp_path / "a.npy", numbers(5, 4))
    from isotrope.sources.vectors.stores import lance

    def changed(*_: object) -> None:
        raise InputError("it was changed.")

    monkeypatch.setattr(lance, "check_unchanged", changed)
    source = ArraySource([place.address, str(tmp_path / "a.npy")], bad_files="skip")
    assert source.left_out == {place.address: "it was changed."}
    assert source.store is None
    assert source._stores == {}


def test_repaired_vectors_of_a_file_do_not_go_to_a_store(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert ArraySource(tmp_path / "a.npy").store is None


def test_lancedb_leaves_out_rows_without_a_vector(tmp_path: Path) -> None:
    import pyarrow as pa

    database = pytest.importorskip("lancedb").connect(str(tmp_path))
    vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float16(), 2))
    database.create_table("t", schema=pa.schema([("vector", vectors.type), ("id", pa.int64())])).add(
        pa.table({"vector": vectors, "id": [1, 2, 3]}), on_bad_vectors="null"
    )
    (batch,) = ArraySource(f"lancedb:{tmp_path}").batches()
    assert batch.layers[0].tolist() == [[1, 2], [3, 4]]
    assert batch.counts == {"rows": 2, "rows_without_vector": 1}
    database.create_table("empty", schema=pa.schema([("vector", vectors.type)]))
    with pytest.raises(InputError, match="no rows"):
        ArraySource(f"lancedb:{tmp_path}#empty")
    with pytest.raises(InputError, match="int64"):
        ArraySource(f"lancedb:{tmp_path}#t", column="id")


def test_lancedb_reads_the_version_that_was_opened(tmp_path: Path) -> None:
    rows = numbers(100, 4)
    source = ArraySource(small_stores.lancedb(tmp_path, rows).address)
    table = pytest.importorskip("lancedb").connect(str(tmp_path)).open_table("texts")
    table.delete("id < 50")
    np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in source.batches()]), rows)


def test_a_lancedb_table_that_another_made_meanwhile_stays(tmp_path: Path) -> None:
    rows = numbers(20, 4)
    place = small_stores.lancedb(tmp_path, rows)
    store, address = ArraySource(place.address).store, parse(f"lancedb:{tmp_path.as_uri()}#repaired")
    assert store is not None
    assert address is not None
    target = store.target(address, None, 4)
    database = pytest.importorskip("lancedb").connect(str(tmp_path))
    database.create_table("repaired", [{"mine": 1}])
    with pytest.raises(InputError, match="already exists"):
        target.write(store.records(10))
    assert database.open_table("repaired").to_arrow().to_pylist() == [{"mine": 1}]


@pytest.mark.parametrize("beginning", ["", "file://"])
def test_what_stops_a_write_to_lancedb_is_told_as_it_is(beginning: str, tmp_path: Path) -> None:
    place = small_stores.lancedb(tmp_path, numbers(20, 4))
    store, address = ArraySource(place.address).store, parse(f"lancedb:{beginning}{tmp_path}#repaired")
    assert store is not None
    assert address is not None

    def stopped():  # type: ignore[no-untyped-def]
        yield from store.records(10)
        raise InputError("row 7 is not finite.")

    with pytest.raises(InputError) as refused:
        store.target(address, None, 4).write(stopped())
    assert str(refused.value) == "row 7 is not finite."
    assert [path.name for path in tmp_path.iterdir()] == ["texts.lance"]


def test_a_qdrant_folder_keeps_the_lengths_of_named_vectors(tmp_path: Path) -> None:
    rows = numbers(40, 8)
    place = small_stores.qdrant(tmp_path / "store", rows, "Cosine", "title")
    source = ArraySource(place.address)
    (batch,) = source.batches()
    np.testing.assert_array_equal(batch.layers[0], rows)
    facts = source.describe()["files"][0]
    assert (facts["vector"], facts["distance"]) == ("title", "Cosine")
    assert "note" not in facts
    store, address = source.store, parse(place.target)
    assert store is not None
    assert address is not None
    repair = Whitening().fit(rows)
    apply_to_store(repair, store, store.target(address, None, 8))
    np.testing.assert_array_equal(place.back(), repair.transform(rows))


def test_qdrant_points_without_the_vector_and_kinds_that_are_no_vectors(tmp_path: Path) -> None:
    library = pytest.importorskip("qdrant_client")
    models, folder = library.models, tmp_path / "store"
    own = library.QdrantClient(path=str(folder))
    several = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    own.create_collection(
        "t",
        {"a": models.VectorParams(size=2, distance="Dot"), "b": models.VectorParams(size=2, distance="Dot"),
         "many": models.VectorParams(size=2, distance="Dot", multivector_config=several)},
    )  # fmt: skip
    own.create_collection("sparse", {}, sparse_vectors_config={"s": models.SparseVectorParams()})
    ids = ["6f9619ff-8b86-d011-b42d-00c04fc964ff", 5, 1]
    own.upsert("t", [models.PointStruct(id=i, vector={"a": [n, 0]} if n else {"b": [1, 1]}) for n, i in enumerate(ids)])
    own.close()
    source = ArraySource(f"qdrant:{folder}#t", column="a")
    (batch,) = source.batches()
    assert batch.layers[0].tolist() == [[2, 0], [1, 0]]
    assert batch.counts == {"rows": 2, "rows_without_vector": 1}
    for address, column, says in [("t", None, "a, b, many"), ("t", "many", "several"), ("sparse", None, "sparse")]:
        with pytest.raises(InputError, match=says):
            ArraySource(f"qdrant:{folder}#{address}", column=column)


class Evil:
    """What makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("collection", ["texts", "a/b", "repaired"])
def test_a_qdrant_folder_runs_no_code(collection: str, tmp_path: Path) -> None:
    """Among the points, in a collection below another folder, and in one that is not listed and about to be made."""
    place, folder = small_stores.qdrant(tmp_path / "store", numbers(20, 4)), tmp_path / "store"
    (folder / "collection" / collection).mkdir(parents=True, exist_ok=True)
    if collection == "a/b":
        meta = json.loads((folder / "meta.json").read_text())
        meta["collections"][collection] = meta["collections"]["texts"]
        (folder / "meta.json").write_text(json.dumps(meta))
    with sqlite3.connect(folder / "collection" / collection / "storage.sqlite") as database:
        database.execute("CREATE TABLE IF NOT EXISTS points (id TEXT PRIMARY KEY, point BLOB)")
        database.execute("INSERT INTO points VALUES ('x', ?)", [pickle.dumps(Evil(tmp_path / "ran"))])

    def used() -> None:
        store, address = ArraySource(place.address).store, parse(place.target)
        assert store is not None
        assert address is not None
        store.target(address, None, 4).write(store.records(10))

    with pytest.raises(InputError, match="could run code"):
        used()
    assert not (tmp_path / "ran").exists()
    assert sys.modules["qdrant_client.local.persistence"].pickle is pickle  # type: ignore[attr-defined]


def test_a_qdrant_folder_that_shows_other_points_each_time_runs_no_code(tmp_path: Path) -> None:
    place = small_stores.qdrant(tmp_path / "store", numbers(1, 4))
    with sqlite3.connect(tmp_path / "store/collection/texts/storage.sqlite") as database:
        (good,) = database.execute("SELECT point FROM points").fetchone()
        database.execute("ALTER TABLE points RENAME TO kept")
        values = f"CASE WHEN random() % 2 THEN x'{good.hex()}' ELSE x'{pickle.dumps(Evil(tmp_path / 'ran')).hex()}' END"
        database.execute(f"CREATE VIEW points AS SELECT id, {values} AS point FROM kept")
    for _ in range(30):
        with suppress(InputError):
            ArraySource(place.address)
        assert not (tmp_path / "ran").exists()


def test_a_new_qdrant_folder_goes_where_writing_fails(tmp_path: Path) -> None:
    place = small_stores.qdrant(tmp_path / "store", numbers(20, 4))
    store, address = ArraySource(place.address).store, parse(f"qdrant:{tmp_path}/new#repaired")
    assert store is not None
    assert address is not None
    target = store.target(address, None, 4)
    assert not (tmp_path / "new").exists()

    def stopped():  # type: ignore[no-untyped-def]
        yield from store.records(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        target.write(stopped())
    assert not (tmp_path / "new").exists()
    target.write(store.records(10))
    assert ArraySource(f"qdrant:{tmp_path}/new").total == 20


def test_addresses() -> None:
    for text in ("vectors.npy", "bert-base-uncased", "BAAI/bge-small", "a#b", "https://host/a.npy"):
        assert parse(text) is None
    for text, kind, place, name in [
        ("lancedb:a#b#t", "lancedb", "a#b", "t"),
        ("lancedb:s3://bucket/a#t", "lancedb", "s3://bucket/a", "t"),
        ("qdrant+https://host:6333#t", "qdrant", "https://host:6333", "t"),
        ("postgres://me@host/db#s.t", "pgvector", "postgresql://me@host/db", "s.t"),
        ("postgresql://me:a#b@host/db#t", "pgvector", "postgresql://me:a#b@host/db", "t"),
        ("a/b.FAISS", "faiss", "a/b.FAISS", None),
        ("faiss:a#b", "faiss", "a#b", None),
        ("lancedb:./data#x.faiss", "lancedb", "./data", "x.faiss"),
        ("qdrant:store.faiss", "qdrant", "store.faiss", None),
    ]:
        found = parse(text)
        assert found is not None
        assert (found.kind, found.place, found.name) == (kind, place, name)
    for secret in ("word", "wo@rd", "wo/rd", "wo rd", "wo#rd", "w:o?r"):
        found = parse(f"postgresql://me:{secret}@host/db#t")
        assert str(found) == "postgresql://***@host/db#t"
        assert secret not in repr(found)
