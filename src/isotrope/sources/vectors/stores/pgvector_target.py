"""A new column of repaired vectors in a PostgreSQL table, filled in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, StoreError
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.pgvector import Relation, connection, find_relation
from isotrope.sources.vectors.stores.pgvector_format import COPY_END, COPY_HEAD, format_rows
from isotrope.sources.vectors.stores.store import Records, name_store_in_errors

if TYPE_CHECKING:
    from isotrope.sources.vectors.stores.pgvector import PgColumn

#: Bytes of a name; PostgreSQL cuts longer ones and says nothing that a program would see.
_LONGEST_NAME = 63

#: pgvector's own limits: numbers in a column of type vector, and in one that an index can be made of.
_MOST, _MOST_INDEXED = 16_000, 2_000

#: How long the table may be used by others before writing gives up.
_LOCK_PATIENCE = "60s"


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
        with name_store_in_errors(self.address, "written"), connection(self.address, write=True) as server:
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


def new_column(source: PgColumn, address: Address, column: str | None, width: int) -> PgTarget:
    """The column that repaired vectors go to; refused where it is there, or the table is another."""
    name = column or f"{source.column}_repaired"
    with name_store_in_errors(address, "opened"), connection(address) as server:
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
    return PgTarget(address, relation, source.column, name, width)


def _triggers(server: Any, relation: Relation) -> list[str]:
    """The users' triggers that filling a new column would set off; those of certain columns are not."""
    found = server.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal AND tgenabled IN ('O', 'A') "
        "AND tgtype & 16 <> 0 AND tgattr::text = '' ORDER BY tgname",
        [relation.identity[-1]],
    ).fetchall()
    return [name for (name,) in found]
