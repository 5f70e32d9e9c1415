"""PostgreSQL with pgvector: a column of vectors in the order of the primary key, and a new column of repaired ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.sources.batch import HASH_DIGITS, LONGEST_LABEL, Groups
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix, format_listing, pick
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.pgvector_table import (
    COPY_END,
    COPY_HEAD,
    DTYPES,
    Relation,
    connect,
    find_relation,
    format_rows,
    keys_of,
    vectors_of,
)
from isotrope.sources.vectors.stores.store import (
    Records,
    Store,
    check_not_empty,
    check_unchanged,
    import_package,
    name_store_in_errors,
)

#: Without a primary key rows come as they lie in the table: scanned from its beginning, by nothing else.
_AS_THEY_LIE = ("synchronize_seqscans", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")

#: Bytes of a name; PostgreSQL cuts longer ones and says nothing that a program would see.
_LONGEST_NAME = 63

#: pgvector's own limits: numbers in a column of type vector, and in one that an index can be made of.
_MOST, _MOST_INDEXED = 16_000, 2_000

#: How long the table may be used by others before writing gives up.
_LOCK_PATIENCE = "60s"


@dataclass(frozen=True)
class _VectorColumn:
    """A column of type vector or halfvec, of the rows where it is not NULL, read by a cursor on the server."""

    address: Address
    relation: Relation
    name: str
    rows: int
    width: int

    def __str__(self) -> str:
        return f"{self.address} [{self.name}]"

    @property
    def type(self) -> str:
        """The type that the server has for it."""
        return self.relation.columns[self.name]

    def read(self, more: Sequence[str], start: int, size: int) -> Iterator[list[Any]]:
        """Rows from number `start` on, `size` at a time: the vector as the server sends it, and more columns."""
        from psycopg import sql

        columns: list[sql.Composable] = [sql.Identifier(self.name)]
        for name in more:
            one = sql.Identifier(name)
            columns.append(one if name in ("ctid", "xmin") else _short_label(one))
        key = self.relation.key
        order = sql.SQL(", ").join(map(sql.Identifier, key))
        query = sql.SQL("SELECT {} FROM {} WHERE {} IS NOT NULL{} OFFSET {}").format(
            sql.SQL(", ").join(columns),
            self.relation.scan,
            columns[0],
            sql.SQL(" ORDER BY {}").format(order) if key else sql.SQL(""),
            sql.Literal(start),
        )
        row = start
        with name_store_in_errors(self.address), connect(self.address) as server:
            for setting in () if key else _AS_THEY_LIE:
                server.execute(sql.SQL("SET LOCAL {} = off").format(sql.Identifier(setting)))
            with server.cursor("isotrope", binary=True) as cursor:
                cursor.execute(query)
                while found := cursor.fetchmany(size):
                    row += len(found)
                    yield found
        if start < self.rows:
            check_unchanged(self.address, self.rows, row)

    def read_vectors(self, more: Sequence[str], start: int, size: int) -> Iterator[tuple[list[Any], NDArray[Any]]]:
        """The same rows, and their vectors (m, width)."""
        row = start
        for found in self.read(more, start, size):
            yield found, vectors_of([sent[0] for sent in found], self.type, self.width, str(self), row)
            row += len(found)

    def pieces(self, group_by: str | None, start: int, size: int) -> Iterator[Piece]:
        """Vectors from row number `start` on, and their groups."""
        for found, vectors in self.read_vectors(() if group_by is None else (group_by,), start, size):
            labels = ("null" if label is None else label for _, *more in found for label in more)
            yield vectors, None if group_by is None else Groups.of(labels)


@dataclass(frozen=True)
class PgColumn(Store):
    """A column of type vector or halfvec, of the rows where it is not NULL."""

    column: _VectorColumn
    state: str

    @property
    def details(self) -> dict[str, Any]:
        relation = self.column.relation
        return {
            "table": f"{relation.schema}.{relation.name}",
            "column": self.column.name,
            "type": self.column.type,
            "order": list(relation.key) or "as stored",
            "state": self.state,
        }

    @property
    def column_names(self) -> list[str]:
        return [name for name, kind in self.column.relation.columns.items() if kind not in DTYPES]

    def read_column(self, name: str, size: int) -> Iterator[list[Any]]:
        return ([value for _, value in rows] for rows in self.column.read((name,), 0, size))

    def records(self, size: int) -> Records:
        """Where each row lies and which version of it was read, (m,), and vectors."""
        for rows, vectors in self.column.read_vectors(("ctid", "xmin"), 0, size):
            yield keys_of(rows), vectors

    def target(self, address: Address, column: str | None, width: int) -> PgTarget:
        """A new column of the same table."""
        return _find_target(self.column, address, column or f"{self.column.name}_repaired", width)


@dataclass(frozen=True)
class PgTarget:
    """A column that is not there yet, of the table that the vectors are from. source: the column they are in."""

    address: Address
    relation: Relation
    source: str
    column: str
    width: int

    @property
    def words(self) -> str:
        wide = f"; for an index of it pgvector takes at most {_MOST_INDEXED:,}" if self.width > _MOST_INDEXED else ""
        return f"the new column {self.column!r} of {self.address}, of type vector({self.width}){wide}"

    def write(self, records: Records) -> None:
        """Collect the vectors in a table of this connection alone, then add the column and fill it from there.

        Rows are known by their place and the transaction that wrote them, so that one which changed since it was read
        is found out, and a table that was laid out anew by its file; then nothing is written. Only for the column is
        the table locked, no longer than it takes to fill it.
        """
        from psycopg import sql

        new, old = sql.Identifier(self.column), sql.Identifier(self.source)
        table = sql.Identifier(self.relation.schema, self.relation.name)
        kind = sql.SQL("{}({})").format(sql.Identifier(self.relation.home, "vector"), sql.Literal(self.width))
        rows = 0
        with name_store_in_errors(self.address, "written"), connect(self.address, write=True) as server:
            server.execute(
                sql.SQL("CREATE TEMP TABLE isotrope_rows (place tid, version xid, vector {}) ON COMMIT DROP").format(
                    kind
                )
            )
            with server.cursor().copy("COPY isotrope_rows FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(COPY_HEAD)
                for keys, vectors in records:
                    copy.write(format_rows(keys, vectors))
                    rows += len(vectors)
                copy.write(COPY_END)
            server.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_LOCK_PATIENCE)))
            server.execute(sql.SQL("ALTER TABLE ONLY {} ADD COLUMN {} {}").format(table, new, kind))
            if find_relation(server, self.address).file != self.relation.file:
                raise self._build_error("it was laid out anew, as by CLUSTER or VACUUM FULL")
            filled = server.execute(
                sql.SQL(
                    "UPDATE ONLY {} AS t SET {} = r.vector FROM isotrope_rows r "
                    "WHERE t.ctid = r.place AND t.xmin = r.version"
                ).format(table, new)
            ).rowcount
            (missed,) = server.execute(
                sql.SQL("SELECT count(*) FROM ONLY {} WHERE {} IS NOT NULL AND {} IS NULL").format(table, old, new)
            ).fetchone()
            if filled != rows or missed:
                raise self._build_error(f"{rows - filled + missed:,} rows")

    def _build_error(self, how: str) -> StoreError:
        return StoreError(
            f"{self.address} was changed while its vectors were repaired ({how}); "
            "nothing was written: run again when it is at rest."
        )


def open_pgvector(address: Address, column: str | None, group_by: str | None) -> PgColumn:
    """The column of vectors of a table; without a name, the only one of type vector or halfvec."""
    sql = import_package("psycopg.sql", "reading PostgreSQL")
    with connect(address) as server:
        relation = find_relation(server, address)
        column = _choose(address, relation, column)
        if group_by is not None:
            pick(str(address), group_by, relation.columns)
        # Where each row lies and which transaction wrote it: a sum that is another one after any change of the rows.
        count = sql.SQL(
            "SELECT count({0}), count(*), sum(hashtextextended(tableoid::text || ctid::text || xmin::text, 0)) "
            "FILTER (WHERE {0} IS NOT NULL)::text FROM {1}"
        ).format(sql.Identifier(column), relation.scan)
        rows, all_rows, state = server.execute(count).fetchone()
    found = _VectorColumn(address, relation, column, rows, relation.widths[column])
    check_not_empty(str(found), rows, all_rows - rows)
    if found.width < 1:  # a column that was declared without one: the first row tells, and all others must agree
        (first,) = next(found.read((), 0, 1))
        found = replace(found, width=int.from_bytes(first[0][:2], "big"))
    dtype = DTYPES[found.type].name
    check_matrix(str(found), (rows, found.width), dtype)
    block = Block(str(found), rows, found.width, dtype, partial(found.pieces, group_by))
    return PgColumn(address, block, all_rows - rows, found, state)


def _short_label(column: Any) -> Any:
    """A column as labels of groups, which the server shortens as `shorten_label` does, so that it sends no long one."""
    from psycopg import sql

    return sql.SQL(
        "CASE WHEN char_length({0}::text) <= {1} THEN {0}::text ELSE left({0}::text, {2}) || '…' || "
        "left(encode(sha256(convert_to({0}::text, 'UTF8')), 'hex'), {3}) END"
    ).format(column, *map(sql.Literal, (LONGEST_LABEL, LONGEST_LABEL - HASH_DIGITS - 1, HASH_DIGITS)))


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
            f"{address} has the columns {format_listing(kinds) or 'none'}, "
            "expected one of pgvector's type vector or halfvec."
        )
    return found[0]


def _find_target(source: _VectorColumn, address: Address, name: str, width: int) -> PgTarget:
    """The column that repaired vectors go to; refused where it is there, or the table is another."""
    with name_store_in_errors(address, "opened"), connect(address) as server:
        relation = find_relation(server, address)
        triggers = _triggers(server, relation)
    if relation.identity != source.relation.identity or relation.kind != "r":
        raise InputError(
            f"{address} is not the plain table that the vectors are from; name that table, and a new column of it "
            "with --output-column."
        )
    if name in relation.columns:
        raise StoreError(f"{address} has a column {name!r} already; name a new one with --output-column.")
    if len(name.encode()) > _LONGEST_NAME:
        raise InputError(
            f"the new column {name!r} has a name of {len(name.encode())} bytes and PostgreSQL keeps {_LONGEST_NAME}; "
            "give a shorter one with --output-column."
        )
    if triggers:
        raise StoreError(
            f"{address} has triggers that run where a row is updated ({', '.join(triggers)}) and might change other "
            "columns; disable them meanwhile (ALTER TABLE ... DISABLE TRIGGER), or write to a file."
        )
    if width > _MOST:
        raise InputError(
            f"the repair gives {width:,} numbers and pgvector's type vector holds {_MOST:,} at most; keep fewer."
        )
    return PgTarget(address, relation, source.name, name, width)


def _triggers(server: Any, relation: Relation) -> list[str]:
    """The users' triggers that filling a new column would set off; those of certain columns are not."""
    found = server.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal AND tgenabled IN ('O', 'A') "
        "AND tgtype & 16 <> 0 AND tgattr::text = '' ORDER BY tgname",
        [relation.identity[-1]],
    ).fetchall()
    return [name for (name,) in found]
