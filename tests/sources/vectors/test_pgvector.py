"""pgvector against a real server: types, order, NULL, names that need quotes, and the column that is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError, StoreError
from isotrope.repairs import Centering, Whitening, apply_to_store
from isotrope.sources.vectors.source import ArraySource
from isotrope.sources.vectors.stores.address import parse
from testkit import small_stores


@pytest.fixture
def sql(postgres: Path) -> Iterator[Any]:
    """Run a statement as a superuser, committed at once."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(host=str(postgres), user="postgres", dbname="postgres", autocommit=True) as server:
        server.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield server.execute


def address(postgres: Path, table: str) -> str:
    return f"postgresql://postgres@/postgres?host={postgres}#{table}"


def rows_of(source: ArraySource) -> list[list[float]]:
    return [row for batch in source.batches() for row in batch.layers[0].tolist()]


def test_half_precision(postgres: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float16)
    place = small_stores.pgvector(postgres, rows.astype(np.float32), "halfvec")
    source = ArraySource(place.address, column="embedding")
    assert source.describe()["dtype"] == "float16"
    np.testing.assert_array_equal(rows_of(source), rows.astype(np.float32))
    repair = Centering().fit(rows.astype(np.float32))
    assert source.store is not None
    target = source.store.target(parse(place.target), None, 8)  # type: ignore[arg-type]
    apply_to_store(repair, source.store, target)
    np.testing.assert_array_equal(place.back(), repair.transform(rows.astype(np.float32)))


def test_without_a_key_rows_come_as_they_lie(postgres: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    place = small_stores.pgvector(postgres, rows, key=False)
    source = ArraySource(place.address, column="embedding")
    np.testing.assert_array_equal(rows_of(source), rows)
    repair = Whitening(n_components=2).fit(rows)
    assert source.store is not None
    apply_to_store(repair, source.store, source.store.target(parse(place.target), None, 2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(place.back(), repair.transform(rows))


def test_quoted_names_null_and_a_key_of_two_columns(postgres: Path, sql: Any) -> None:
    sql('DROP SCHEMA IF EXISTS "odd; --" CASCADE')
    sql('CREATE SCHEMA "odd; --"')
    sql('CREATE TABLE "odd; --"."my ""t"""(b text, a int, "v""; DROP" vector, PRIMARY KEY (a, b))')
    sql('SET search_path = public, "odd; --"')
    values = "('x', 2, '[5,6]'), ('y', 1, '[3,4]'), ('x', 1, '[1,2]'), ('z', 0, NULL)"
    sql(f'INSERT INTO "my ""t""" VALUES {values}')
    source = ArraySource(address(postgres, 'odd; --.my "t"'))
    (batch,) = source.batches()
    assert batch.layers[0].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert batch.counts == {"rows": 3, "rows_without_vector": 1}
    repair = Centering().fit(batch.layers[0])
    store, where = source.store, parse(address(postgres, 'odd; --.my "t"'))
    assert store is not None
    assert where is not None
    apply_to_store(repair, store, store.target(where, 'n"ew', 2))
    found = sql('SELECT "n""ew"::text FROM "my ""t""" ORDER BY a, b').fetchall()
    assert found == [(None,), ("[-2,-2]",), ("[0,0]",), ("[2,2]",)]


def test_refusals(postgres: Path, sql: Any) -> None:
    sql("DROP TABLE IF EXISTS odd CASCADE")
    sql("CREATE TABLE odd (id int PRIMARY KEY, a vector(2), b vector(2), c text, d vector, e sparsevec(3), w real[])")
    sql("CREATE VIEW odd_view AS SELECT * FROM odd")
    for table, column, says in [
        ("odd", None, "a, b, d"), ("odd", "c", "type text"), ("odd", "e", "sparsevec"), ("odd", "w", "float4"),
        ("odd", "a", "no rows"), ("odd_view", "a", "is a view"), ("nosuch", None, "odd"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=says):
            ArraySource(address(postgres, table), column=column)
    sql("INSERT INTO odd (id, d) VALUES (1, '[1,2]'), (2, '[1,2,3]')")
    source = ArraySource(address(postgres, "odd"), column="d")
    assert source.width == 2
    with pytest.raises(InputError, match=r"row 1 .* has 3 numbers, expected 2"):
        rows_of(source)
    with pytest.raises(InputError, match="2 without"):
        ArraySource(address(postgres, "odd"), column="a")
    store = source.store
    assert store is not None
    with pytest.raises(InputError, match="16,000"):
        store.target(parse(address(postgres, "odd")), "new", 16_001)  # type: ignore[arg-type]
    assert "2,000" in store.target(parse(address(postgres, "odd")), "new", 2_001).words  # type: ignore[arg-type]
    with pytest.raises(InputError, match="table that the vectors are from"):
        store.target(parse(place_of_another(postgres)), "new", 2)  # type: ignore[arg-type]


def place_of_another(postgres: Path) -> str:
    return small_stores.pgvector(postgres, np.ones((3, 2), np.float32)).address


@pytest.mark.parametrize(
    "change",
    ["UPDATE texts SET language = 'fr' WHERE id = 7", "DELETE FROM texts WHERE id = 7",
     "INSERT INTO texts SELECT 1000, language, embedding FROM texts WHERE id = 7",
     "CLUSTER texts USING texts_pkey"],
)  # fmt: skip
def test_a_table_that_changes_meanwhile_is_left_alone(postgres: Path, sql: Any, change: str) -> None:
    rows = np.random.default_rng(2).normal(size=(100, 4)).astype(np.float32)
    place = small_stores.pgvector(postgres, rows)
    store = ArraySource(place.address, column="embedding").store
    assert store is not None
    target = store.target(parse(place.target), None, 4)  # type: ignore[arg-type]

    def changing() -> Iterator[Any]:
        yield from store.records(30)
        sql(change)

    with pytest.raises(StoreError, match="changed"):
        target.write(changing())
    columns = sql("SELECT count(*) FROM pg_attribute WHERE attrelid = 'texts'::regclass AND attnum > 0").fetchone()
    assert columns == (4,)


def test_triggers_are_not_set_off(postgres: Path, sql: Any) -> None:
    rows = np.random.default_rng(3).normal(size=(20, 4)).astype(np.float32)
    place = small_stores.pgvector(postgres, rows)
    sql("CREATE OR REPLACE FUNCTION touch() RETURNS trigger AS "
        "$$ BEGIN NEW.language = 'changed'; RETURN NEW; END $$ LANGUAGE plpgsql")  # fmt: skip
    sql("CREATE TRIGGER touched BEFORE UPDATE ON texts FOR EACH ROW EXECUTE FUNCTION touch()")
    sql("CREATE TRIGGER put BEFORE INSERT ON texts FOR EACH ROW EXECUTE FUNCTION touch()")
    sql("CREATE TRIGGER of_another BEFORE UPDATE OF language ON texts FOR EACH ROW EXECUTE FUNCTION touch()")
    store, where = ArraySource(place.address, column="embedding").store, parse(place.target)
    assert store is not None
    assert where is not None
    with pytest.raises(StoreError, match=r"\(touched\) .*DISABLE TRIGGER"):
        store.target(where, None, 4)
    sql("ALTER TABLE texts DISABLE TRIGGER touched")
    apply_to_store(Centering().fit(rows), store, store.target(where, None, 4))
    assert sql("SELECT count(*) FROM texts WHERE language = 'changed'").fetchone() == (0,)


def test_a_name_that_would_be_cut_is_refused(postgres: Path) -> None:
    place = small_stores.pgvector(postgres, np.ones((3, 2), np.float32))
    store, where = ArraySource(place.address, column="embedding").store, parse(place.target)
    assert store is not None
    assert where is not None
    with pytest.raises(InputError, match="64 bytes and PostgreSQL keeps 63"):
        store.target(where, "é" * 32, 2)
    assert store.target(where, "é" * 31, 2).words


@pytest.mark.parametrize(
    "change",
    ["UPDATE texts SET embedding = '[1,2]' WHERE id = 1",
     "WITH gone AS (DELETE FROM texts WHERE id = 1 RETURNING *) "
     "INSERT INTO texts SELECT 9, language, embedding FROM gone"],
)  # fmt: skip
def test_facts_tell_a_changed_table_of_as_many_rows(postgres: Path, sql: Any, change: str) -> None:
    """So that --resume refuses it."""
    place = small_stores.pgvector(postgres, np.ones((3, 2), np.float32))
    before, again = (ArraySource(place.address, column="embedding").describe() for _ in range(2))
    assert before == again
    sql(change)
    assert ArraySource(place.address, column="embedding").describe() != before


def test_reading_cannot_write(postgres: Path) -> None:
    from isotrope.sources.vectors.stores.pgvector_table import connect

    psycopg = pytest.importorskip("psycopg")
    place = parse(address(postgres, "texts"))
    assert place is not None
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connect(place) as server:
        server.execute("CREATE TABLE written (a int)")
