"""A PostgreSQL table with vectors: the connection, the catalogue, and rows as the server sends and takes them.

pgvector's vectors are two numbers of 16 bits, then floats, all big-endian.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.store import import_package

#: Seconds to wait for a connection, where neither the address nor the environment says so.
_PATIENCE = 10

#: How rows are scanned of each kind of relation whose rows have an order that stays: tables, materialised views,
#: partitioned tables.
SCANS = {"r": "ONLY ", "m": "ONLY ", "p": ""}

#: The types of columns that are read, and what they hold.
DTYPES: dict[str, np.dtype[Any]] = {"vector": np.dtype(np.float32), "halfvec": np.dtype(np.float16)}

#: What COPY begins and ends with in its binary form.
COPY_HEAD, COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"

#: Where a row lies in its table (ctid), and the transaction that wrote it (xmin): together one version of one row.
KEYS = np.dtype([("place", "V6"), ("version", "V4")])


@contextmanager
def connect(address: Address, write: bool = False) -> Iterator[Any]:
    """One transaction, by default one that only reads, of a single moment; committed where all went well.

    User and password are given apart from the rest of the address, so that no message of the library can show them.
    """
    psycopg = import_package("psycopg", "reading PostgreSQL")
    beginning, _, rest = address.place.partition("://")
    user, at, rest = rest.rpartition("@")
    name, colon, password = user.partition(":")
    apart = {"user": unquote(name)} if at and name else {}
    apart |= {"password": unquote(password)} if colon else {}
    known = psycopg.conninfo.conninfo_to_dict(f"{beginning}://{rest}")
    if "connect_timeout" not in known and "PGCONNECT_TIMEOUT" not in os.environ:
        known["connect_timeout"] = _PATIENCE
    with psycopg.connect(**known, **apart) as server:
        server.read_only = not write
        server.isolation_level = (
            psycopg.IsolationLevel.READ_COMMITTED if write else psycopg.IsolationLevel.REPEATABLE_READ
        )
        yield server


@dataclass(frozen=True)
class Relation:
    """A table as the catalogue has it.

    Attributes:
        kind: The kind of relation, one of those in `SCANS`.
        columns: The type of each column.
        widths: The declared width of each column, below 1 where none is.
        key: The columns of the primary key.
        home: The schema that pgvector's types are in.
        identity: The server's start, the database and the table, by which two addresses are known for the same place.
        file: The number of the file that holds the rows, another one whenever they are laid out anew.
    """

    schema: str
    name: str
    kind: str
    columns: Mapping[str, str]
    widths: Mapping[str, int]
    key: Sequence[str]
    home: str
    identity: tuple[Any, ...]
    file: int | None

    @property
    def scan(self) -> Any:
        """The table as a query names it."""
        from psycopg import sql

        return sql.SQL(SCANS[self.kind]) + sql.Identifier(self.schema, self.name)


def find_relation(server: Any, address: Address) -> Relation:
    """What the catalogue says of the table that an address names, TABLE or SCHEMA.TABLE."""
    from psycopg import sql

    name = address.named
    for parts in [(name,), tuple(name.split(".", 1))]:
        quoted = sql.Identifier(*parts).as_string(server)
        found = server.execute(
            "SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_relation_filenode(c.oid) "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            [quoted],
        ).fetchone()
        if found is not None:
            break
    else:
        raise InputError(f"{address} names a table that is not there{_tables(server)}.")
    oid, schema, table, kind, file = found
    if kind not in SCANS:
        raise InputError(f"{address} is a view, a foreign table or the like, whose rows have no order; name a table.")
    columns = server.execute(
        "SELECT a.attname, t.typname, a.atttypmod, n.nspname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "JOIN pg_namespace n ON n.oid = t.typnamespace "
        "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        [oid],
    ).fetchall()
    key = server.execute(
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "WHERE i.indrelid = %s AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)",
        [oid],
    ).fetchall()
    (started, database) = server.execute(
        "SELECT pg_postmaster_start_time()::text, oid FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    return Relation(
        schema,
        table,
        kind,
        {name: kind for name, kind, _, _ in columns},
        {name: width for name, _, width, _ in columns},
        [name for (name,) in key],
        next((home for _, kind, _, home in columns if kind in DTYPES), "public"),
        (started, database, oid),
        file,
    )


def _tables(server: Any) -> str:
    """The tables that have vectors, in words."""
    found = server.execute(
        "SELECT DISTINCT a.attrelid::regclass::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "JOIN pg_class c ON c.oid = a.attrelid WHERE t.typname IN ('vector', 'halfvec') "
        "AND c.relkind IN ('r', 'm', 'p') AND NOT a.attisdropped ORDER BY 1 LIMIT 12"
    ).fetchall()
    names = ", ".join(name for (name,) in found)
    return f"; those with vectors are {names}" if names else ", nor is any with vectors"


def vectors_of(sent: Sequence[bytes], kind: str, width: int, name: str, row: int) -> NDArray[Any]:
    """Vectors (m, width) from what the server sent; the first is of row number `row`.

    >>> one = b"\\x00\\x02\\x00\\x00" + np.array([1.5, -2.0], ">f4").tobytes()
    >>> vectors_of([one, one], "vector", 2, "x", 0).tolist()
    [[1.5, -2.0], [1.5, -2.0]]
    """
    form = np.dtype([("head", "V4"), ("values", DTYPES[kind].newbyteorder(">"), (width,))])
    for i, one in enumerate(sent):
        if len(one) != form.itemsize:
            raise InputError(
                f"row {row + i} of {name} (counted from 0) has {int.from_bytes(one[:2], 'big')} numbers, expected "
                f"{width} as in the others; remove it, or make all equally long."
            )
    values: NDArray[Any] = np.frombuffer(b"".join(sent), form)["values"].astype(DTYPES[kind])
    return values


def keys_of(rows: Sequence[Sequence[Any]]) -> NDArray[Any]:
    """Places and versions of rows that came as (vector, ctid, xmin)."""
    return np.frombuffer(b"".join(place + version for _, place, version in rows), KEYS)


def format_rows(keys: NDArray[Any], vectors: NDArray[Any]) -> bytes:
    """Rows (place, version, vector) as COPY takes them: a count of fields, then each behind its length."""
    rows, width = vectors.shape
    form = np.dtype(
        [
            ("fields", ">i2"), ("place_length", ">i4"), ("place", "V6"), ("version_length", ">i4"), ("version", "V4"),
            ("length", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("values", ">f4", (width,)),
        ]
    )  # fmt: skip
    out = np.zeros(rows, form)
    out["fields"], out["place_length"], out["version_length"] = 3, 6, 4
    out["place"], out["version"] = keys["place"], keys["version"]
    out["length"], out["width"], out["values"] = 4 + 4 * width, width, vectors
    return out.tobytes()
