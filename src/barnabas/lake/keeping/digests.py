"""Digests of what gold tables use of other tables: the values of some columns, and not of every row that ever was.

Its one rule: equal digests mean equal rows of gold; where that cannot be known, there is no digest. DuckDB makes them, which
takes milliseconds where Spark takes seconds.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from barnabas.lake.keeping.folders import Folder
from barnabas.lake.keeping.manifest import TableState
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.keeping.remote_files import for_duckdb
from barnabas.lake.tables.declaration import Uses

if TYPE_CHECKING:
    import duckdb

_ENDED: Final = "valid_to_offset"


def digest_of(data: Folder, state: TableState, uses: Uses) -> str | None:
    """Return a digest of what is used of a table; None without DuckDB, or if the files do not have the columns."""
    connection = _connection()
    if connection is None:
        return None
    import duckdb

    is_history = _ENDED in state.columns
    only_open = is_history and not uses.ended
    # Open rows are those that a batch of their stream replaces.
    parts = [part for each in state.present.values() for part in each] if only_open else state.parts
    files = for_duckdb(connection, data, [file.name for file in files_of(data, parts)])
    if not files:
        return "nothing"
    names = ["cluster_id", *uses.columns]
    shown = [f'"{name}"' for name in names] + ([f"{_ENDED} IS NULL"] if is_history else [])
    distinct = (
        f"SELECT DISTINCT {', '.join(shown)} FROM read_parquet(?, union_by_name = true, hive_partitioning = false)"
    )
    distinct += f" WHERE {_ENDED} IS NULL" if only_open else ""
    query = f"SELECT count(*), bit_xor(hash(rows)), sum(hash(rows) >> 32) FROM ({distinct}) AS rows"
    try:
        found = connection.cursor().execute(query, [files]).fetchone()
    except duckdb.Error:
        return None
    return None if found is None else "-".join(map(str, found))


@cache
def _connection() -> duckdb.DuckDBPyConnection | None:
    try:
        import duckdb
    except ModuleNotFoundError:
        return None
    return duckdb.connect(config={"autoinstall_known_extensions": False})
