"""Answers from what a lake has stored, without Spark and Java: DuckDB reads the Parquet files that one manifest names.

    with StoredLake(Lake(path)) as stored:
        stored.select(Selection("changes", (Condition("kind", "=", "configs"),)))

Its one rule: it returns the rows that Spark would return, or raises NotStoredError, which says what only Spark can do. Gold
tables are stored if a run keeps them, and if nothing was added since. Imports neither pyspark nor pyarrow: that takes longer
than most answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from barnabas import __version__
from barnabas.lake.asking.selection import Condition, Found, Selection, named
from barnabas.lake.declared_column import Nested, parse_type
from barnabas.lake.keeping.manifest import NotStoredError, TableState, stored
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.keeping.remote_files import for_duckdb
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.storage.log_dirs import CLUSTER_METADATA

if TYPE_CHECKING:
    import duckdb

    from barnabas.lake.keeping.store import Lake

RECORDS: Final = "metadata_records"
_TYPES: Final = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "timestamp": "TIMESTAMPTZ",
}
_CHUNK: Final = 2048
_LAST_OF_BATCH: Final = "CASE WHEN is_snapshot THEN snapshot_end_offset - 1 ELSE last_offset END"
_OF_RECORD: Final = 'CASE WHEN is_snapshot THEN snapshot_end_offset - 1 ELSE "offset" END'


class StoredLake:
    """The stored tables of one commit; a context manager. Implements `Answers`."""

    def __init__(self, lake: Lake) -> None:
        """Raises NotStoredError without DuckDB."""
        try:
            import duckdb
        except ModuleNotFoundError:
            raise NotStoredError("duckdb is not installed") from None
        self.data, self.manifest = lake.data, lake.manifest()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            config={"threads": os.cpu_count() or 1, "autoinstall_known_extensions": False}
        )
        self.connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
        self._viewed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    # --- what there is

    def state(self, name: str) -> TableState:
        """Return the stored table of this name. Raises NotStoredError."""
        return stored(self.manifest, name, __version__)

    def check(self, names: Iterable[str], moment: AsOf = EVERYTHING) -> None:
        """Raise NotStoredError if one of these tables cannot be read as of this moment."""
        self.state(RECORDS)
        for name in names:
            state = self.state(name)
            if moment != EVERYTHING and not _has_moments(state):
                raise NotStoredError(f"{name} has to be computed for this moment")

    def view(self, name: str) -> TableState:
        """Make the table a view of this connection. Raises NotStoredError."""
        state = self.state(name)
        if name not in self._viewed:
            self.connection.execute(f"CREATE VIEW {_quoted(name)} AS {self._rows_of(state)}")
            self._viewed.add(name)
        return state

    def view_empty(self, name: str, columns: Mapping[str, str]) -> None:
        """Make a table that no batch has filled yet a view of this connection."""
        if name not in self._viewed:
            self.connection.execute(f"CREATE VIEW {_quoted(name)} AS {self._rows_of(TableState(dict(columns)))}")
            self._viewed.add(name)

    def _rows_of(self, state: TableState) -> str:
        types = {name: _type(kind) for name, kind in state.columns.items()}
        empty = ", ".join(f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in types.items())
        rows = f"SELECT {empty} WHERE false"
        if files := [file.name for file in files_of(self.data, state.parts)]:
            listed = ", ".join(map(_text, for_duckdb(self.connection, self.data, files)))
            # By name, since older parts may lack columns.
            options = "union_by_name = true, hive_partitioning = false"
            rows += f" UNION ALL BY NAME SELECT * FROM read_parquet([{listed}], {options})"
        shown = ", ".join(_shown(name, kind) for name, kind in types.items())
        return f"SELECT {shown} FROM ({rows})"

    # --- Answers

    def cluster_id(self, wanted: str | None = None) -> str:
        self.view(RECORDS)
        ids = self.connection.execute(f"SELECT DISTINCT cluster_id FROM {RECORDS} ORDER BY cluster_id").fetchall()
        known = [row[0] for row in ids]
        if wanted is not None and wanted not in known:
            raise ValueError(f"cluster {wanted} is not in the lake; it has {', '.join(known) or 'none'}")
        if wanted is None and len(known) != 1:
            raise ValueError(f"the lake has {len(known)} clusters: {', '.join(known)}")
        return wanted or str(known[0])

    def places(self, moment: AsOf = EVERYTHING, cluster_id: str | None = None) -> list[tuple[str, str, int]]:
        self.view(RECORDS)
        conditions, values = [f"({_LAST_OF_BATCH}) IS NOT NULL"], list[Any]()
        if cluster_id is not None:
            conditions, values = [*conditions, "cluster_id = ?"], [*values, cluster_id]
        if moment.offset is not None:
            conditions, values = [*conditions, f"({_OF_RECORD}) <= ?"], [*values, moment.offset]
        elif moment.timestamp_ms is not None:
            at = datetime.fromtimestamp(moment.timestamp_ms / 1000, UTC)
            conditions, values = [*conditions, "append_time <= ?"], [*values, _value(at)]
        query = f"SELECT cluster_id, max({_LAST_OF_BATCH}) FROM {RECORDS} WHERE {' AND '.join(conditions)}"
        found = self.connection.execute(f"{query} GROUP BY 1 ORDER BY 1", values).fetchall()
        log = str(CLUSTER_METADATA)
        return [(cluster, log, offset) for cluster, offset in found]

    def select(
        self, selection: Selection, moment: AsOf | None = None, cluster_id: str | None = None, limit: int | None = None
    ) -> Found:
        """Raises NotStoredError, also for moments that only Spark can compute."""
        state = self.view(selection.table)
        where, values = _where(selection.conditions)
        if cluster_id is not None:
            where, values = [*where, "cluster_id = ?"], [*values, cluster_id]
        if moment is not None:
            also = self._at(selection.table, state, moment, cluster_id)
            where, values = where + also[0], values + also[1]
        columns = ", ".join(f"{_quoted(name)} AS {_quoted(other)}" for name, other in named(selection.columns)) or "*"
        query = f"SELECT {columns} FROM {_quoted(selection.table)}"
        query += f" WHERE {' AND '.join(where)}" if where else ""
        query += f" ORDER BY {', '.join(map(_ordered, selection.order))}" if selection.order else ""
        query += f" LIMIT {limit}" if limit is not None else ""
        return self.run(query, values)

    def _at(self, name: str, state: TableState, moment: AsOf, cluster_id: str | None) -> tuple[list[str], list[Any]]:
        """Return conditions for the rows that were true at a moment."""
        is_history = "valid_to_offset" in state.columns
        if moment == EVERYTHING:
            return (['"valid_to_offset" IS NULL'] if is_history else []), []
        if not _has_moments(state):
            raise NotStoredError(f"{name} has to be computed for this moment")
        at = "(valid_from_offset <= ? AND (valid_to_offset IS NULL OR valid_to_offset > ?) AND cluster_id = ?)"
        places = self.places(moment, cluster_id)
        values = [value for cluster, _, offset in places for value in (offset, offset, cluster)]
        return [f"({' OR '.join([at] * len(places)) or 'false'})"], values

    def run(self, query: str, values: list[Any] | None = None) -> Found:
        """Run a query of DuckDB, and return its rows as they are fetched."""
        done = self.connection.execute(query, values or [])
        return Found(tuple(column[0] for column in done.description or ()), _fetched(done))


def _has_moments(state: TableState) -> bool:
    """Return whether it is a history of the metadata log, whose offsets are the moments."""
    return "valid_to_offset" in state.columns and "log" not in state.columns


def _fetched(done: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := done.fetchmany(_CHUNK):
        yield from rows


def _where(conditions: tuple[Condition, ...]) -> tuple[list[str], list[Any]]:
    texts, values = list[str](), list[Any]()
    for column, operator, value in conditions:
        name = _quoted(column)
        if operator == "is null":
            texts.append(f"{name} IS NULL")
        elif operator == "in":
            texts.append(f"{name} IN ({', '.join('?' * len(value))})")
            values += map(_value, value)
        else:
            texts.append(f"{name} {operator} ?")
            values.append(_value(value))
    return texts, values


def _value(value: Any) -> Any:
    """Return times as those of the views, in UTC without a zone."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _shown(name: str, kind: str) -> str:
    """Return a column of a view. A time has no zone there: for one with a zone, DuckDB needs another library in Python."""
    return f"make_timestamp(epoch_us({_quoted(name)})) AS {_quoted(name)}" if kind == "TIMESTAMPTZ" else _quoted(name)


def _type(kind: str | Nested) -> str:
    """Return DuckDB's name of a type of Spark's DDL. Raises NotStoredError."""
    found = parse_type(kind) if isinstance(kind, str) else kind
    if isinstance(found, str):
        if found not in _TYPES:
            raise NotStoredError(f"type {found} is not known")
        return _TYPES[found]
    inner = [(name, _type(member)) for name, member in found.members]
    if found.name == "array":
        return f"{inner[0][1]}[]"
    if found.name == "map":
        return f"MAP({inner[0][1]}, {inner[1][1]})"
    return f"STRUCT({', '.join(f'{_quoted(name)} {member}' for name, member in inner)})"


def _ordered(column: str) -> str:
    return f"{_quoted(column[1:])} DESC" if column.startswith("-") else _quoted(column)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
