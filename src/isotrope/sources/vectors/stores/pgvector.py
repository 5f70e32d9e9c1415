"""PostgreSQL with pgvector: a column of vectors in the order of the primary key, read by a cursor on the server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from isotrope.errors import InputError
from isotrope.sources.batch import HASH_DIGITS, LONGEST_LABEL, Groups
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix, listing, pick
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.pgvector_format import DTYPES, keys_of, vectors_of
from isotrope.sources.vectors.stores.store import (
    Records,
    check_not_empty,
    check_unchanged,
    name_store_in_errors,
    package,
)

if TYPE_CHECKING:
    from isotrope.sources.vectors.stores.pgvector_target import PgTarget

#: Seconds to wait for a connection, where neither the address nor the environment says so.
_PATIENCE = 10

#: Kinds of relation whose rows have an order that stays: tables, materialised views, partitioned tables.
_TABLES = {"r": "ONLY ", "m": "ONLY ", "p": ""}

#: Without a primary key rows come as they lie in the table: scanned from its beginning, by nothing else.
_AS_THEY_LIE = ("synchronize_seqscans", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")


@dataclass(frozen=True)
class Relation:
    """A table as the catalogue has it: schema and name, kind, columns with their types, primary key.

    identity: the server's start, the database and the table, by which two addresses are known for the same place. file:
    the number of the file that holds the rows, another one whenever they are laid out anew.
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


@dataclass(frozen=True)
class PgColumn:
    """A column of type vector or halfvec, of the rows where it is not NULL."""

    address: Address
    relation: Relation
    column: str
    block: Block
    left_out: int
    state: str

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "path": str(self.address),
            "store": "pgvector",
            "table": f"{self.relation.schema}.{self.relation.name}",
            "column": self.column,
            "type": self.relation.columns[self.column],
            "order": list(self.relation.key) or "as stored",
            "rows": self.block.rows,
            "rows_without_vector": self.left_out,
            "state": self.state,
        }

    def records(self, size: int) -> Records:
        """Where each row lies and which version of it was read, (m,), and vectors."""
        kind, row = self.relation.columns[self.column], 0
        for rows in _rows(self.address, self.relation, self.column, ("ctid", "xmin"), self.block.rows, 0, size):
            vectors = vectors_of([r[0] for r in rows], kind, self.block.width, self.block.name, row)
            yield keys_of(rows), vectors
            row += len(rows)

    def target(self, address: Address, column: str | None, width: int) -> PgTarget:
        """A new column of the same table."""
        from isotrope.sources.vectors.stores.pgvector_target import new_column

        return new_column(self, address, column, width)


def open_pgvector(address: Address, column: str | None, group_by: str | None) -> PgColumn:
    """The column of vectors of a table; without a name, the only one of type vector or halfvec."""
    sql = package("psycopg.sql", "reading PostgreSQL")
    with connection(address) as server:
        relation = find_relation(server, address)
        column = _choose(address, relation, column)
        if group_by is not None:
            pick(str(address), group_by, relation.columns)
        # Where each row lies and which transaction wrote it: a sum that is another one after any change of the rows.
        count = sql.SQL(
            "SELECT count({0}), count(*), sum(hashtextextended(tableoid::text || ctid::text || xmin::text, 0)) "
            "FILTER (WHERE {0} IS NOT NULL)::text FROM {1}{2}"
        ).format(
            sql.Identifier(column), sql.SQL(_TABLES[relation.kind]), sql.Identifier(relation.schema, relation.name)
        )
        rows, every, state = server.execute(count).fetchone()
    name, left_out = f"{address} [{column}]", every - rows
    check_not_empty(name, rows, left_out)
    dtype = DTYPES[relation.columns[column]]
    width = relation.widths[column]
    if width < 1:  # a column that was declared without one: the first row tells, and all others must agree
        (first,) = next(_rows(address, relation, column, (), rows, 0, 1))
        width = int.from_bytes(first[0][:2], "big")
    check_matrix(name, (rows, width), dtype.name)
    pieces = partial(_pieces, address, relation, column, group_by, rows, width, name)
    return PgColumn(address, relation, column, Block(name, rows, width, dtype.name, pieces), left_out, state)


def _pieces(
    address: Address, relation: Relation, column: str, group_by: str | None, rows: int, width: int, name: str,
    start: int, size: int,
) -> Iterator[Piece]:  # fmt: skip
    more = () if group_by is None else (group_by,)
    row = start
    for found in _rows(address, relation, column, more, rows, start, size):
        values = vectors_of([r[0] for r in found], relation.columns[column], width, name, row)
        labels = None if group_by is None else Groups.of(_label(r[1]) for r in found)
        yield values, labels
        row += len(found)


def _rows(
    address: Address, relation: Relation, column: str, more: Sequence[str], rows: int, start: int, size: int
) -> Iterator[list[Any]]:
    """Rows from number `start` on, at most `size` at a time: the vector as the server sends it, and more columns."""
    from psycopg import sql

    columns: list[sql.Composable] = [sql.Identifier(column)]
    for name in more:
        one = sql.Identifier(name)
        columns.append(one if name in ("ctid", "xmin") else _short_label(one))
    order = sql.SQL(", ").join(map(sql.Identifier, relation.key))
    query = sql.SQL("SELECT {} FROM {}{} WHERE {} IS NOT NULL{} OFFSET {}").format(
        sql.SQL(", ").join(columns),
        sql.SQL(_TABLES[relation.kind]),
        sql.Identifier(relation.schema, relation.name),
        columns[0],
        sql.SQL(" ORDER BY {}").format(order) if relation.key else sql.SQL(""),
        sql.Literal(start),
    )
    row = start
    with name_store_in_errors(address), connection(address) as server:
        for setting in () if relation.key else _AS_THEY_LIE:
            server.execute(sql.SQL("SET LOCAL {} = off").format(sql.Identifier(setting)))
        with server.cursor("isotrope", binary=True) as cursor:
            cursor.execute(query)
            while found := cursor.fetchmany(size):
                row += len(found)
                yield found
    if start < rows:
        check_unchanged(address, rows, row)


def _short_label(column: Any) -> Any:
    """A column as labels of groups, which the server shortens as `shorten_label` does, so that it sends no long one."""
    from psycopg import sql

    return sql.SQL(
        "CASE WHEN char_length({0}::text) <= {1} THEN {0}::text ELSE left({0}::text, {2}) || '…' || "
        "left(encode(sha256(convert_to({0}::text, 'UTF8')), 'hex'), {3}) END"
    ).format(column, *map(sql.Literal, (LONGEST_LABEL, LONGEST_LABEL - HASH_DIGITS - 1, HASH_DIGITS)))


def _label(value: str | None) -> str:
    return "null" if value is None else value


def _choose(address: Address, relation: Relation, column: str | None) -> str:
    kinds = relation.columns
    if column is not None:
        if pick(str(address), column, kinds) not in DTYPES:
            raise InputError(
                f"{address} [{column}] is of type {kinds[column]}, expected vector or halfvec; "
                "name another column with --column."
            )
        return column
    found = [name for name, kind in kinds.items() if kind in DTYPES]
    if len(found) > 1:
        raise InputError(f"{address} has the vectors {', '.join(found)}, expected one; name it with --column.")
    if not found:
        raise InputError(
            f"{address} has the columns {listing(kinds) or 'none'}, expected one of pgvector's type vector or halfvec."
        )
    return found[0]


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
    if kind not in _TABLES:
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


@contextmanager
def connection(address: Address, write: bool = False) -> Iterator[Any]:
    """One transaction, by default one that only reads, of a single moment; committed where all went well.

    User and password are given apart from the rest of the address, so that no message of the library can show them.
    """
    psycopg = package("psycopg", "reading PostgreSQL")
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
